"""Every wrong word has its own message, with file, line and key path; all of them at once.

A case is a block in `faults/*.txt`: the file's text after ``> ``, then the messages.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from bringup.core.errors import InventoryError
from bringup.core.knobs import Knob
from bringup.edge.inventory import load
from tests.conftest import ROOT

from .folder import write

KNOBS = {
    knob.name: knob
    for knob in (
        Knob("ready_timeout_s", int, 600, "a budget"),
        Knob("memory_fraction", float, None, "a share"),
        Knob("backend", str, None, "kernels", choices=("triton", "flashinfer"), engines=("vllm",)),
        Knob("on", bool, None, "a switch"),
    )
}

WHOLE = """\
engine: vllm
model: {served_name: q, path: /m}
image: {name: v, reference: 'v:1'}"""


def cases(name: str) -> list[tuple[str, list[str]]]:
    """Return the blocks of a file: the text, and what it should be told."""
    blocks = (Path(__file__).parent / "faults" / name).read_text().split("\n\n")
    split = [
        ([line[2:] for line in lines if line.startswith(">")], lines)
        for lines in (block.strip().split("\n") for block in blocks)
    ]
    return [("\n".join(text), lines[len(text) :]) for text, lines in split]


def told(folder: Path) -> list[str]:
    with pytest.raises(InventoryError) as raised:
        load(folder, ROOT / "images", knobs=KNOBS, engines=("vllm", "sglang"))
    texts = [str(problem) for problem in raised.value.problems]
    assert all(text.startswith(f"{folder}/") for text in texts), "paths that open from here"
    return [f"inventory{text.removeprefix(str(folder))}" for text in texts]


@pytest.mark.parametrize(("text", "messages"), cases("hosts.txt"))
def test_a_wrong_hosts_file_is_told_where_and_what(
    tmp_path: Path, text: str, messages: list[str]
) -> None:
    folder = write(tmp_path, hosts=f"{text}\n", deployment="")
    wanted = [message.replace("FOLDER", str(folder)) for message in messages]
    assert told(folder) == [f"inventory/hosts.yml:{message}" for message in wanted]


@pytest.mark.parametrize(
    ("content", "sha256", "messages"),
    [
        (b"not a key\n", "", ["file: is no OpenPGP public key (gpg --armor --export writes one)",
                             "sha256: is missing: the file has SUM"]),
        (b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n", "0" * 64,
         [f"sha256: is {'0' * 64}, and the file has SUM"]),
    ],
)  # fmt: skip
def test_a_key_of_a_repository_is_checked_by_its_sum(
    tmp_path: Path, content: bytes, sha256: str, messages: list[str]
) -> None:
    sum_ = f", sha256: '{sha256}'" if sha256 else ""
    text = f"repositories: {{r: {{uri: 'file:/srv', key: {{file: k{sum_}}}}}}}\nhosts: {{a: }}\n"
    folder = write(tmp_path, hosts=text, deployment="")
    (folder / "k").write_bytes(content)
    found = hashlib.sha256(content).hexdigest()
    head = "inventory/hosts.yml:1: repositories/r/key/"
    assert told(folder) == [head + message.replace("SUM", found) for message in messages]


@pytest.mark.parametrize(("text", "messages"), cases("deployment.txt"))
def test_a_wrong_deployment_is_told_where_and_what(
    tmp_path: Path, text: str, messages: list[str]
) -> None:
    deployment = text.replace("{whole}", WHOLE) + "\n"
    folder = write(tmp_path, hosts="hosts: {a: , b: {gpu_count: 2}}", deployment=deployment)
    assert told(folder) == [f"inventory/deployments/demo.yml:{message}" for message in messages]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("memory_mib: 1\n", "1: product_names: is missing"),
        ("product_names: []\n", "1: product_names: is empty"),
        ("product_names: x\nmemory: 1\n", "2: memory: unknown key; did you mean memory_mib?"),
        ("product_names: x\nsource: 5\n", "2: source: should be text, not 5: quote it ('5')"),
        ("product_names: x\npower_w: 1.5\n", "2: power_w: should be an integer, not 1.5"),
        (
            "product_names: x\ndriver_floor: 580.10\n",
            "2: driver_floor: should be text, not 580.10: quote it ('580.10')",
        ),
        ("product_names: x\nknobs: {onn: 1}\n", "2: knobs/onn: no knob 'onn'; did you mean on?"),
    ],
)
def test_a_wrong_kind_is_told_where_and_what(tmp_path: Path, text: str, message: str) -> None:
    assert told(write(tmp_path, kind=text)) == [f"inventory/kinds/b300.yml:{message}"]


def test_all_files_are_told_at_once(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        hosts="hosts:\n  a: {port: x, user: no}\n  b: {kind: b30}\n",
        kind="memory_mib: 1\n",
        deployment=f"{WHOLE}\nroles: {{r: {{mode: decode, hosts: c}}}}\n",
    )
    (folder / "deployments" / "other.yaml").write_text("")
    assert told(folder) == [
        "inventory/hosts.yml:2: hosts/a/port: should be an integer, not 'x'",
        "inventory/hosts.yml:2: hosts/a/user: no is a word to some readers and a switch to others: "
        "write true or false, or quote it ('no')",
        "inventory/hosts.yml:3: hosts/b/kind: there is no kinds/b30.yml; did you mean b300?",
        "inventory/deployments/demo.yml:4: roles/r/hosts: no host 'c'; there is a, b",
        "inventory/deployments/other.yaml: is not read: name it NAME.yml",
        "inventory/kinds/b300.yml:1: product_names: is missing",
    ]


def test_broken_yaml_in_one_file_does_not_blame_the_others(tmp_path: Path) -> None:
    folder = write(tmp_path, hosts="hosts: {a: \n", kind="")
    assert [message.split(": ")[1] for message in told(folder)] == ["is not YAML"]


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (folder / "kinds" / "x.yml").mkdir()
    assert told(folder) == ["inventory/kinds/x.yml: cannot be read: Is a directory"]


def test_a_faulty_image_folder_is_told_with_the_rest(tmp_path: Path) -> None:
    images = tmp_path / "images"
    (images / "x").mkdir(parents=True)
    (images / "x" / "image.yml").write_text("name: [\n")
    with pytest.raises(InventoryError) as raised:
        load(write(tmp_path, hosts="hosts: {a: {port: x}}", deployment=""), images)
    files = {problem.file for problem in raised.value.problems}
    assert files == {"images/x/image.yml", f"{tmp_path}/inventory/hosts.yml"}


def test_a_long_value_is_shortened(tmp_path: Path) -> None:
    (message,) = told(write(tmp_path, hosts=f"hosts: {{a: {{port: '{'x' * 500}'}}}}", kind="",
                            deployment=""))  # fmt: skip
    assert message.endswith("xxx…")
    assert len(message) < 150


def test_the_remedy_says_where_the_files_are(tmp_path: Path) -> None:
    with pytest.raises(InventoryError) as raised:
        load(write(tmp_path, hosts="hosts: {a: {port: x}}"))
    assert raised.value.remedy == f"mend the files under {tmp_path}; no host was touched"
