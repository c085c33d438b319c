"""What an image.yml may say, and how its faults read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bringup.core.errors import InventoryError, TemplateError, UsageError
from bringup.edge.dockerfile import docker_word
from bringup.edge.image_file import read_image, read_images

from .folders import ROOT, make_folder

DIFF = b"--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n"
PATCH = {"onto": "/engine", "reason": "why", "link": "https://example.org/1"}
SUM = "0" * 64


def test_every_image_of_the_repository_reads() -> None:
    assert [image.recipe.name for image in read_images(ROOT / "images")] == [
        "dynamo-sglang-k3",
        "vllm-nixl",
    ]


def test_k3_takes_dynamo_without_extra_and_without_dependencies() -> None:
    recipe = read_image(ROOT / "images/dynamo-sglang-k3").recipe
    pins = {pin.name: pin for pin in recipe.packages}
    assert pins["ai-dynamo"].version == "1.3.0.post1"
    assert pins["ai-dynamo"].extras == ()
    assert {"ai-dynamo", "ai-dynamo-runtime"} <= set(recipe.no_deps)


def test_k3_invents_no_digest_and_no_patch() -> None:
    recipe = read_image(ROOT / "images/dynamo-sglang-k3").recipe
    assert (recipe.base.digest, recipe.patches) == ("", ())


def test_a_base_with_a_digest_is_built_from_the_digest(tmp_path: Path) -> None:
    base = {"reference": "host:5000/a/b:tag", "digest": f"sha256:{SUM}"}
    recipe = read_image(make_folder(tmp_path, base=base)).recipe
    assert recipe.base.pinned == f"host:5000/a/b@sha256:{SUM}"


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "loose pin": ({"packages": ["torch>=2"]}, "packages/0: 'torch>=2' should be an exact pin"),
    "no version": ({"packages": ["torch"]}, "'torch' should be an exact pin: name==version"),
    "no_deps of nobody": (
        {"no_deps": ["ai-dynamos"]},
        "no_deps/0: 'ai-dynamos' is none of the packages above; did you mean ai-dynamo",
    ),
    "unknown key": ({"patchs": []}, "patchs: is not a key here; did you mean patches?"),
    "unknown key of base": (
        {"base": {"reference": "b:1", "digst": "x"}},
        "base/digst: is not a key here; did you mean digest?",
    ),
    "short digest": (
        {"base": {"reference": "b:1", "digest": "sha256:12"}},
        "base/digest: 'sha256:12' should be sha256: and 64 hex digits",
    ),
    "missing engine": ({"engine": None}, "image.yml:1: engine: is missing"),
    "other name": ({"name": "large"}, "'large' should be the folder's name, small"),
    "version as a number": (
        {"engine": {"name": "sglang", "version": 0.5, "path": "/e"}},
        "engine/version: should be text: put it in quotes",
    ),
    "unknown check": (
        {"gate": [{"check": "import"}]},
        "gate/0: check 'import' is unknown; did you mean imports",
    ),
    "check without its value": (
        {"gate": [{"check": "imports"}]},
        "gate/0/modules: modules is missing for check imports",
    ),
    "value of no check": (
        {"gate": [{"check": "engine_unchanged", "modules": "x"}]},
        "modules is not a value of check engine_unchanged",
    ),
    "patch without a link": (
        {"patches": [{"diff": "a.diff", "onto": "/e", "reason": "x", "replaces": {}}]},
        "patches/0/link: is missing",
    ),
    "patch out of its folder": (
        {"patches": [{**PATCH, "overlay": "../x", "replaces": {}}]},
        "'../x' should be a path below the folder",
    ),
    "both kinds": (
        {"patches": [{**PATCH, "overlay": "tree", "diff": "a.diff", "replaces": {"x.py": SUM}}]},
        "patches/0: should have one of overlay and diff",
    ),
    "overlay file without its sum": (
        {"patches": [{**PATCH, "overlay": "tree", "replaces": {}}]},
        "x.py is missing: give the sha256 of the file it replaces, or 'new'",
    ),
    "sum without its file": (
        {"patches": [{**PATCH, "overlay": "tree", "replaces": {"x.py": SUM, "y.py": SUM}}]},
        "patches/tree/y.py is not there",
    ),
    "diff of another file": (
        {"patches": [{**PATCH, "diff": "a.diff", "replaces": {"y.py": SUM}}]},
        "y.py: the diff does not change it",
    ),
    "no diff": (
        {"patches": [{**PATCH, "diff": "tree/x.py", "replaces": {}}]},
        "patches/tree/x.py: it holds no unified diff",
    ),
    "diff that deletes": (
        {"patches": [{**PATCH, "diff": "gone.diff", "replaces": {"f.py": SUM}}]},
        "patches/gone.diff deletes f.py",
    ),
    "two patches of one file": (
        {
            "patches": [
                {**PATCH, "overlay": "tree", "replaces": {"x.py": SUM}},
                {**PATCH, "overlay": "tree", "replaces": {"x.py": SUM}},
            ]
        },
        "patches/1/replaces/x.py: patches/0 changes this file already",
    ),
    "package twice": ({"packages": ["a-b==1", "A_B==2"]}, "a-b is pinned above already"),
    "base as text": ({"base": "b:1"}, "base: should be keys with values"),
    "digest in the reference": (
        {"base": {"reference": f"b@sha256:{SUM}"}},
        "a digest stands under digest:",
    ),
    "base with a scheme": (
        {"base": {"reference": "docker://b:1"}},
        "should be a repository and a tag, as lmsysorg/sglang:kimi-k3",
    ),
    "command as text": (
        {"gate": [{"check": "prints", "command": "a -V", "pattern": "x"}]},
        "gate/0/command: should be a list of words",
    ),
    "pattern that is none": (
        {"gate": [{"check": "prints", "command": ["a"], "pattern": "("}]},
        "'(' is no regular expression",
    ),
    "gpu as a word": (
        {"gate": [{"check": "engine_unchanged", "gpu": "some"}]},
        "gate/0/gpu: should be true or false",
    ),
    "label of bringup": ({"labels": {"bringup.x": "1"}}, "those below bringup. are its own"),
    "promise that nobody knows": ({"provides": {"nvccc": "13"}}, "should be nvcc or flashinfer"),
    "constraint twice": ({"constraints": "twice.txt"}, "twice.txt:2: a is pinned above already"),
    "constraint that is none": ({"constraints": "c.txt"}, "c.txt:2: 'b>1' is no name==version"),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS, ids=str)
def test_fault_names_file_line_and_key(case: str, tmp_path: Path) -> None:
    changed, message = FAULTS[case]
    files = {
        "patches/a.diff": DIFF,
        "patches/tree/x.py": b"a = 2\n",
        "patches/gone.diff": b"--- a/f.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
        "c.txt": b"a==1 # fine\nb>1\n",
        "twice.txt": b"a==1\nA==2\n",
    }
    with pytest.raises(InventoryError) as raised:
        read_image(make_folder(tmp_path, files=files, **changed))
    assert message in str(raised.value)
    assert "images/small/" in str(raised.value)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("RUN true\n", "Dockerfile.j2: has no line FROM {{ image.base.pinned }}"),
        ("FROM other:1\n", "has no line FROM"),
        ("FROM {{ image.base.pinned }}\nRUN {{ image.tga }}\n", ":2: image has no attribute 'tga'"),
        ("FROM {{ imag.base }}", "Dockerfile.j2:1: 'imag' is undefined"),
        ("{% if %}\n", "Dockerfile.j2:1: Expected an expression"),
        ('{% include "x" %}\n', "Dockerfile.j2:1: no loader"),
        ("FROM {{ 1 / 0 }}\n", "Dockerfile.j2:1: division by zero"),
    ],
)
def test_fault_of_the_template_names_its_line(template: str, message: str, tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    (folder / "Dockerfile.j2").write_text(template)
    with pytest.raises(InventoryError) as raised:
        read_image(folder)
    assert message in str(raised.value)


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(InventoryError) as raised:
        read_image(make_folder(tmp_path, packages=["a", "b"], name="other"))
    assert len(raised.value.problems) == 5  # two pins, two no_deps that are none of them, the name


def test_missing_folder_names_the_images_there_are(tmp_path: Path) -> None:
    make_folder(tmp_path)
    with pytest.raises(UsageError, match="did you mean small") as raised:
        read_image(tmp_path / "images" / "smal")
    assert "small" in raised.value.remedy


def test_label_text_is_never_expanded() -> None:
    assert docker_word('a "b" $HOME \\') == '"a \\"b\\" \\$HOME \\\\"'
    with pytest.raises(TemplateError):
        docker_word("a\nRUN rm")


@pytest.mark.parametrize("name", ["dynamo-sglang-k3", "vllm-nixl"])
@pytest.mark.parametrize("wheels", [False, True])
def test_dockerfile_is_as_reviewed(name: str, wheels: bool, golden: Any) -> None:
    text = read_image(ROOT / "images" / name).dockerfile(wheels=wheels, buildkit=wheels).decode()
    golden(f"{name}{'-wheels' if wheels else ''}.Dockerfile", text)
