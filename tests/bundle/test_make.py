"""Making a bundle here or from a host, and checking it against folders and cards."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from bringup.bundle.selection import Why
from bringup.core.errors import Blocked, ToolError, UsageError
from bringup.edge.bundle_files import open_archive
from bringup.flow.bundle import (
    Source,
    check_cards,
    check_folder,
    make,
    read_here,
    read_there,
)
from bringup.readiness.cards import ModelCard, parse_card
from tests.dynamo.model import toy_kimi, toy_model

from .folders import LFS_POINTER, bundle_of, hub_snapshot, with_weights
from .here import CutHost, HereHost, busybox_tools


def made(folder: Path, out: Path, **more: str) -> str:
    """Return the ids of findings that are no pass."""
    report = make(read_here(folder), out, **more)
    return " ".join(f.id for f in report.findings if f.remedy)


def odd_tree(folder: Path) -> Path:
    """A model folder with everything that a shell script may trip over."""
    with_weights(folder)
    for name in (
        b"-n",
        b"a b",
        b"'q'",
        b"$(id)",
        b"new\nline\n",
        b"back\\slash",
        b"\xff\xfe",
        b"*",
    ):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(name)
    (folder / "empty").write_bytes(b"")
    (folder / "large.txt").write_bytes(os.urandom(800_000))
    (folder / "link").symlink_to("config.json")
    (folder / "out").symlink_to("/etc/passwd")
    (folder / "broken").symlink_to("nowhere")
    (folder / "up").symlink_to("..")
    os.mkfifo(folder / "pipe")
    return folder


@pytest.mark.parametrize("tools", ["system", "busybox"])
def test_host_and_this_machine_read_a_folder_alike(tmp_path: Path, tools: str) -> None:
    folder = odd_tree(tmp_path / "model")
    host = HereHost(tools=busybox_tools(tmp_path / "tools") if tools == "busybox" else None)
    here, there = read_here(folder), read_there(host.site, str(folder))
    assert there.files == here.files
    assert {(left.name, left.why) for left in there.selection.left} == {
        (left.name, left.why) for left in here.selection.left
    }


def test_folder_of_a_host_is_read_in_two_trips(tmp_path: Path) -> None:
    host = HereHost()
    read_there(host.site, str(toy_model(tmp_path / "model")))
    assert host.trips == 2


def test_large_tokenizer_comes_in_several_trips_and_whole(tmp_path: Path) -> None:
    folder = toy_model(tmp_path / "model")
    (folder / "large.json").write_bytes(os.urandom(7_000_001))
    host = HereHost()
    source = read_there(host.site, str(folder))
    assert source.files["large.json"] == (folder / "large.json").read_bytes()
    assert host.trips == 4


def test_hub_snapshot_on_a_host_is_followed_and_gives_its_revision(tmp_path: Path) -> None:
    snapshot = hub_snapshot(tmp_path)
    source = read_there(HereHost().site, str(snapshot))
    assert source.files == read_here(snapshot).files
    assert source.listing.revision == "0" * 39 + "a"


def test_path_on_a_host_lies_under_its_root(tmp_path: Path) -> None:
    toy_model(tmp_path / "root/raid/K3")
    host = HereHost(root=str(tmp_path / "root"))
    assert "config.json" in read_there(host.site, "/raid/K3").files


def test_missing_folder_on_a_host_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="absent") as error:
        read_there(HereHost().site, str(tmp_path / "nowhere"))
    assert error.value.host == "b300-04"


@pytest.mark.parametrize("kept", [0.05, 0.5, 0.9])
def test_answer_that_was_cut_off_never_makes_a_smaller_bundle(tmp_path: Path, kept: float) -> None:
    folder = toy_model(tmp_path / "model")
    with pytest.raises(ToolError, match="cannot"):
        read_there(CutHost(kept).site, str(folder))


def test_report_says_what_stayed_out_and_who_can_read_it(tmp_path: Path) -> None:
    report = make(read_here(with_weights(tmp_path / "model")), tmp_path / "b.tgz")
    assert {left.why for left in report.left} == {Why.WEIGHT_NAME, Why.WEIGHT_CONTENT}
    assert all(not findings for findings in report.readers.values())
    assert open_archive(Path(report.path)).manifest == report.manifest


def test_same_folder_made_twice_writes_nothing_new(tmp_path: Path) -> None:
    folder = toy_model(tmp_path / "model")
    one = make(read_here(folder), tmp_path / "b.tgz")
    before = (tmp_path / "b.tgz").stat().st_ino
    two = make(read_there(HereHost().site, str(folder)), tmp_path / "b.tgz")
    assert (one.sha256, before) == (two.sha256, (tmp_path / "b.tgz").stat().st_ino)


def test_kimi_k3_is_refused_for_1_3_and_made_for_1_6(tmp_path: Path) -> None:
    folder = toy_kimi(tmp_path / "K3")
    with pytest.raises(Blocked, match=r"Dynamo 1\.3\.0\.post1") as error:
        made(folder, tmp_path / "b.tgz", dynamo="1.3.0.post1")
    assert "--dyn-chat-processor sglang" in error.value.remedy
    assert not (tmp_path / "b.tgz").exists()
    assert made(folder, tmp_path / "b.tgz", dynamo="1.6.1") == ""


def test_kimi_k3_for_an_unnamed_release_is_made_and_says_who_reads_it(tmp_path: Path) -> None:
    report = make(read_here(toy_kimi(tmp_path / "K3")), tmp_path / "b.tgz")
    able = {release for release, blocks in report.readers.items() if not blocks}
    assert able == {"1.5.0", "1.6.0"}
    assert any("from 1.5.0 on" in line for f in report.findings for line in f.evidence)


def test_kimi_k3_on_1_3_with_the_sglang_processor_is_made_with_a_warning(tmp_path: Path) -> None:
    folder = toy_kimi(tmp_path / "K3")
    said = made(folder, tmp_path / "b.tgz", dynamo="1.3.0.post1", processor="sglang")
    assert "bundle-tokenizer-type" in said


SPOILT = {
    "bundle-config": "config.json",
    "bundle-tokenizer": "tokenizer.json",
    "bundle-tokenizer-config": "tokenizer_config.json",
    "bundle-template": "chat_template.jinja",
}


@pytest.mark.parametrize("finding", SPOILT)
def test_folder_that_no_release_could_serve_is_refused(tmp_path: Path, finding: str) -> None:
    folder = toy_model(tmp_path / "model")
    (folder / SPOILT[finding]).unlink()
    with pytest.raises(Blocked) as error:
        make(read_here(folder), tmp_path / "b.tgz")
    assert finding in error.value.said
    assert make(read_here(folder), tmp_path / "b.tgz", accept=[finding]).sha256


def test_folder_without_generation_config_is_fine_when_config_names_the_end(tmp_path: Path) -> None:
    folder = toy_model(tmp_path / "model")
    (folder / "generation_config.json").unlink()
    assert made(folder, tmp_path / "b.tgz") == ""


def test_pointer_in_place_of_the_tokenizer_is_refused_with_git_s_remedy(tmp_path: Path) -> None:
    folder = toy_model(tmp_path / "model")
    (folder / "tokenizer.json").write_bytes(LFS_POINTER)
    with pytest.raises(Blocked) as error:
        make(read_here(folder), tmp_path / "b.tgz")
    assert "Git LFS pointer" in error.value.said
    assert "git lfs pull" in error.value.remedy


def test_garbage_for_config_is_told_from_a_missing_one(tmp_path: Path) -> None:
    folder = toy_model(tmp_path / "model")
    (folder / "config.json").write_text("{oops")
    with pytest.raises(Blocked) as error:
        make(read_here(folder), tmp_path / "b.tgz")
    assert "config.json is no JSON" in error.value.said


def test_missing_python_file_of_the_tokenizer_is_noted(tmp_path: Path) -> None:
    folder = toy_model(tmp_path / "model")
    document = {"auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(document))
    assert made(folder, tmp_path / "b.tgz") == "bundle-code"


def card_of(folder: Path) -> ModelCard:
    """Return the card that a worker with this folder announces, of the one file that counts."""
    file = next(f for f in _manifest(folder) if f["name"] == "tokenizer.json")
    tokenizer = {
        "path": str(folder / "tokenizer.json"),
        "checksum": f"blake3:{file['blake3']}",
        "size": file["size"],
    }
    place = {"namespace": "dynamo", "component": "backend", "endpoint": "generate"}
    card = {"display_name": "toy", "tokenizer": {"hf_tokenizer_json": tokenizer}}
    value = json.dumps({**place, "instance_id": 7, "card_json": card}).encode()
    reading = parse_card("v1/mdc/dynamo/backend/generate/7", value)
    return reading.value  # type: ignore[union-attr]


def _manifest(folder: Path) -> list[dict[str, object]]:
    source: Source = read_here(folder)
    report = make(source, folder.parent / "card.tgz")
    return [
        {"name": file.name, "size": file.size, "blake3": file.blake3}
        for file in report.manifest.files
    ]


def test_bundle_of_the_worker_s_folder_fits_its_card(tmp_path: Path) -> None:
    folder = toy_model(tmp_path / "model")
    bundle = bundle_of(folder, tmp_path / "b.tgz")
    assert check_cards(bundle, [card_of(folder)], name="toy").is_good


def test_bundle_of_another_folder_does_not_fit_and_says_which_file(tmp_path: Path) -> None:
    folder = toy_model(tmp_path / "model")
    bundle = bundle_of(folder, tmp_path / "b.tgz")
    (folder / "tokenizer.json").write_text((folder / "tokenizer.json").read_text() + " ")
    report = check_cards(bundle, [card_of(folder)], name="toy")
    assert [str(one)[:15] for one in report.mismatches] == ["tokenizer.json:"]


def test_no_card_to_compare_with_is_an_error_and_no_pass(tmp_path: Path) -> None:
    bundle = bundle_of(toy_model(tmp_path / "model"), tmp_path / "b.tgz")
    with pytest.raises(UsageError, match="no worker announces toy"):
        check_cards(bundle, [], name="toy")


def test_folder_is_compared_file_by_file(tmp_path: Path) -> None:
    folder = toy_model(tmp_path / "model")
    bundle = bundle_of(folder, tmp_path / "b.tgz")
    (folder / "config.json").unlink()
    (folder / "tokenizer.json").write_text("{}")
    (folder / "extra.txt").write_text("x")
    here = check_folder(bundle, HereHost().site, str(folder)).folder
    assert here is not None
    assert (here.missing, here.changed, here.extra) == (
        ("config.json",),
        ("tokenizer.json",),
        ("extra.txt",),
    )
