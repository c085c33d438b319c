"""What is refused before anything is built. pip's own resolver answers, from a folder of wheels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bringup.core.reading import Absent, Known, Reading, Unknown
from bringup.core.rules import Finding, Level, Status
from bringup.edge.image_file import read_image
from bringup.edge.pip import Index
from bringup.flow import image_check as flow_image_check
from bringup.image.checks import Bench, base_is_pinned
from bringup.image.pins import nearest, parse_requirement

from .folders import make_folder
from .wheels import make_dynamo


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("wheels")
    make_dynamo(folder)
    return Index(wheels=folder)


NOWHERE = "localhost:1/base:1"
"""A base whose registry refuses at once, so that no test asks one on the internet."""


def gate(root: Path, index: Index, **changed: Any) -> dict[str, Finding]:
    files = {"base.txt": b"sglang==0.5.18\nkubernetes==32.0.1\n"}
    words = {"base": {"reference": NOWHERE}, **changed}
    image = read_image(make_folder(root, files=files, **words))
    return {finding.id: finding for finding in flow_image_check.check(image, index=index)}


def test_published_line_is_refused_for_both_reasons_with_the_cure(
    tmp_path: Path, index: Index
) -> None:
    found = gate(tmp_path, index, packages=["ai-dynamo[sglang]==1.3.0"], no_deps=[])
    missing, swapped = found["IMG-01-pins"], found["IMG-02"]
    assert (missing.level, swapped.level) == (Level.BLOCK, Level.BLOCK)
    assert "ai-dynamo 1.3.0 does not exist (nearest: 1.3.0.post1, 1.3.1)" in missing.evidence[0]
    assert "[sglang] pins sglang[diffusion]==0.5.14" in swapped.evidence[0]
    assert "replaces sglang 0.5.18" in swapped.evidence[0]
    assert missing.remedy == "write ai-dynamo==1.3.0.post1 with ai-dynamo under no_deps, no extra"


def test_existing_pin_with_the_extra_is_refused_for_the_engine(
    tmp_path: Path, index: Index
) -> None:
    found = gate(tmp_path, index, packages=["ai-dynamo[sglang]==1.3.0.post1"], no_deps=[])
    assert found["IMG-01-pins"].status is Status.PASS
    assert found["IMG-02"].level is Level.BLOCK


def test_dynamo_without_extra_and_dependencies_passes(tmp_path: Path, index: Index) -> None:
    found = gate(tmp_path, index)
    assert not [finding for finding in found.values() if finding.level is Level.BLOCK]


def test_range_that_excludes_the_engine_is_refused_by_the_resolver(
    tmp_path: Path, index: Index
) -> None:
    found = gate(tmp_path, index, packages=["needs-old-engine==1.0"], no_deps=[])
    assert found["IMG-02-resolve"].level is Level.BLOCK
    assert "sglang==0.5.18" in " ".join(found["IMG-02-resolve"].evidence)


def test_tag_alone_is_a_warning_that_says_how_to_pin(tmp_path: Path, index: Index) -> None:
    finding = gate(tmp_path, index)["IMG-01"]
    assert finding.level is Level.WARN
    assert finding.remedy == "bringup image.pin small"
    assert "what it stands for is not known: skopeo cannot ask its registry" in finding.evidence[-1]


@pytest.mark.parametrize(
    ("here", "there", "told"),
    [
        ("", Known("sha256:b"), ["in its registry it stands for sha256:b now"]),
        ("sha256:b", Known("sha256:b"), [
            "on the engine it stands for sha256:b", "in its registry it stands for sha256:b now",
        ]),
        ("sha256:a", Known("sha256:b"), [
            "on the engine it stands for sha256:a",
            "the tag has moved: in its registry it stands for sha256:b now",
        ]),
        ("sha256:a", Unknown("cut off"), ["on the engine it stands for sha256:a"]),
        ("", Absent("no skopeo"), ["what it stands for is not known: no skopeo"]),
    ],
)  # fmt: skip
def test_a_tag_is_told_with_what_it_stands_for_and_whether_it_moved(
    tmp_path: Path, here: str, there: Reading[str], told: list[str]
) -> None:
    recipe = read_image(make_folder(tmp_path)).recipe
    seen = base_is_pinned(Bench(recipe, {}, Unknown("not asked"), {}, here, there))
    assert list(seen.evidence[1:]) == told


def test_missing_plain_dependency_is_named_once_the_base_is_recorded(
    tmp_path: Path, index: Index
) -> None:
    base = {"reference": "base:1", "packages": "base.txt"}
    found = gate(
        tmp_path, index, base=base, packages=["kubernetes==32.0.1"], no_deps=["kubernetes"]
    )
    assert found["IMG-02-no-deps"].evidence == ("kubernetes needs websocket-client>=0.32",)


def test_index_out_of_reach_is_unknown_not_missing(tmp_path: Path) -> None:
    found = gate(tmp_path, Index(wheels=tmp_path / "nothing"))
    assert found["IMG-01-pins"].status is Status.UNKNOWN


def test_strange_flags_block_and_unknown_ones_warn(tmp_path: Path, index: Index) -> None:
    image = read_image(make_folder(tmp_path))
    strange = flow_image_check.check(image, index=index, flags={"k3": Known(("--no-such",))})
    unsure = flow_image_check.check(image, index=index, flags={"k3": Unknown("no list for 0.5.19")})
    assert {f.id: f.level for f in strange}["IMG-04"] is Level.BLOCK
    assert {f.id: f.level for f in unsure}["IMG-04"] is Level.WARN


@pytest.mark.parametrize(
    ("wanted", "versions", "close"),
    [
        ("1.3.0", ("1.2.1", "1.3.0.post1", "1.3.1", "1.4.0"), ("1.3.0.post1", "1.3.1")),
        ("2.0", ("1.0", "1.1", "1.2"), ("1.1", "1.2")),
        ("1.0", ("1.1.dev3", "1.2"), ("1.2",)),
        ("1.0.dev1", ("1.0.dev2", "1.2"), ("1.0.dev2", "1.2")),
        ("no version", ("1.0", "1.1"), ("1.0", "1.1")),
        ("1.0", (), ()),
    ],
)
def test_nearest_versions_are_the_next_ones_up(
    wanted: str, versions: tuple[str, ...], close: tuple[str, ...]
) -> None:
    assert nearest(wanted, versions) == close


@pytest.mark.parametrize(
    ("line", "name", "exact", "extra"),
    [
        ("sglang[diffusion]==0.5.14; extra == 'sglang'", "sglang", "0.5.14", "sglang"),
        ("aiohttp<4.0,>=3.9.0", "aiohttp", "", ""),
        ("foo (==1.2.*)", "foo", "", ""),
        ("Foo_Bar === 1.2", "foo-bar", "1.2", ""),
        ("uvloop", "uvloop", "", ""),
    ],
)
def test_requirement_lines_read(line: str, name: str, exact: str, extra: str) -> None:
    found = parse_requirement(line)
    assert found is not None
    assert (found.name, found.exact, found.extra) == (name, exact, extra)
