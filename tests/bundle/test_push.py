"""Placing a bundle: only where it differs, whole, and never over weights or somebody's files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bringup.bundle.reports import PushOutcome
from bringup.bundle.step import bundle_step
from bringup.core.errors import Blocked, Unreachable
from bringup.core.event import Event
from bringup.core.steps import Run
from bringup.edge.bundle_files import Opened
from bringup.flow.bundle_push import push

from .folders import bundle_of, safetensors, with_weights
from .here import GoneHost, HereHost, busybox_tools, target


@pytest.fixture
def bundle(tmp_path: Path) -> Opened:
    folder = with_weights(tmp_path / "model")
    (folder / "odd 'name'\\ $x\n.txt").write_text("odd")
    Path(os.fsdecode(os.fsencode(folder) + b"/not-utf8-\xff.txt")).write_text("odder")
    return bundle_of(folder, tmp_path / "bundle.tgz")


def placed_in(
    bundle: Opened, path: Path, *, host: HereHost | None = None, replace: bool = False
) -> PushOutcome:
    (row,) = push(bundle, [target(path, host)], replace=replace)
    if row.error:
        raise row.error
    return row.outcome


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".bringup-bundle.json"
    }


@pytest.mark.parametrize("tools", ["system", "busybox"])
def test_bundle_arrives_byte_for_byte(bundle: Opened, tmp_path: Path, tools: str) -> None:
    host = HereHost(tools=busybox_tools(tmp_path / "tools") if tools == "busybox" else None)
    assert placed_in(bundle, tmp_path / "raid/models/K3", host=host) is PushOutcome.CHANGED
    assert files_of(tmp_path / "raid/models/K3") == dict(bundle.files)
    assert (tmp_path / "raid/models/K3/config.json").stat().st_mode & 0o777 == 0o644


def test_unchanged_target_costs_one_trip_and_no_push(bundle: Opened, tmp_path: Path) -> None:
    placed_in(bundle, tmp_path / "K3")
    host = HereHost()
    (row,) = push(bundle, [target(tmp_path / "K3", host)])
    assert (row.outcome, host.trips, host.pushes) == (PushOutcome.SAME, 1, 0)


def test_check_writes_nothing(bundle: Opened, tmp_path: Path) -> None:
    host = HereHost()
    (row,) = push(bundle, [target(tmp_path / "K3", host)], check=True)
    assert (row.outcome, row.found, host.trips) == (PushOutcome.WOULD_CHANGE, "absent", 1)
    assert not (tmp_path / "K3").exists()


@pytest.mark.parametrize("spoil", ["tokenizer.json", "assets/logo.svg"])
def test_altered_file_is_seen_and_mended(bundle: Opened, tmp_path: Path, spoil: str) -> None:
    placed_in(bundle, tmp_path / "K3")
    (tmp_path / "K3" / spoil).write_text("altered")
    (row,) = push(bundle, [target(tmp_path / "K3")])
    assert (row.outcome, row.found) == (
        PushOutcome.CHANGED,
        f"altered since it was placed: {spoil}",
    )
    assert files_of(tmp_path / "K3") == dict(bundle.files)


def test_model_folder_with_the_same_files_needs_nothing(bundle: Opened, tmp_path: Path) -> None:
    assert placed_in(bundle, tmp_path / "model") is PushOutcome.SAME


def test_folder_with_weights_is_never_replaced(bundle: Opened, tmp_path: Path) -> None:
    folder = tmp_path / "K3"
    folder.mkdir()
    (folder / "model-00001-of-00096.safetensors").write_bytes(safetensors())
    with pytest.raises(Blocked, match="holds weights"):
        placed_in(bundle, folder, replace=True)
    assert (folder / "model-00001-of-00096.safetensors").exists()


def test_check_tells_that_a_push_would_be_refused(bundle: Opened, tmp_path: Path) -> None:
    folder = tmp_path / "K3"
    folder.mkdir()
    (folder / "model-00001-of-00096.safetensors").write_bytes(safetensors())
    host = HereHost()
    (row,) = push(bundle, [target(folder, host)], check=True)
    assert isinstance(row.error, Blocked)
    assert "bundle.check BUNDLE --folder b300-04:" in row.error.remedy
    assert host.trips == 1


def test_weights_that_came_after_the_look_are_safe_as_well(bundle: Opened, tmp_path: Path) -> None:
    step = bundle_step(bundle.manifest, str(bundle.path), bundle.sha256, str(tmp_path / "K3"))
    guard = step.actions[0]
    assert isinstance(guard, Run)
    (tmp_path / "K3").mkdir()
    (tmp_path / "K3/late.gguf").write_bytes(b"GGUF")
    result = HereHost().run(guard)
    assert (result.exit, "holds weights (late.gguf)" in result.stdout) == (3, True)


def test_somebody_s_files_go_only_when_asked(bundle: Opened, tmp_path: Path) -> None:
    folder = tmp_path / "K3"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(Blocked, match="notes"):
        placed_in(bundle, folder)
    assert placed_in(bundle, folder, replace=True) is PushOutcome.CHANGED


def test_link_is_not_written_through(bundle: Opened, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "K3").symlink_to(tmp_path / "real")
    with pytest.raises(Blocked, match="is a link to"):
        placed_in(bundle, tmp_path / "K3")


def test_paths_lie_under_the_host_s_root(bundle: Opened, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    host = HereHost(root=str(tmp_path / "root"))
    (row,) = push(bundle, [target(Path("/raid/K3"), host)])
    assert row.outcome is PushOutcome.CHANGED
    assert files_of(tmp_path / "root/raid/K3") == dict(bundle.files)


def test_one_unreachable_target_stops_itself_alone(bundle: Opened, tmp_path: Path) -> None:
    targets = [
        target(Path("/raid/K3"), GoneHost(name="b300-99")),
        target(tmp_path / "K3"),
    ]
    gone, good = push(bundle, targets)
    assert (gone.outcome, good.outcome) == (PushOutcome.FAILED, PushOutcome.CHANGED)
    assert isinstance(gone.error, Unreachable)
    assert gone.error.host == "b300-99"


def test_many_targets_tell_their_progress_to_the_end(bundle: Opened, tmp_path: Path) -> None:
    events: list[Event] = []
    hosts = [HereHost(name=f"b300-{number:02}") for number in range(12)]
    targets = [target(tmp_path / host.host.name, host) for host in hosts]
    push(bundle, targets, listen=events.append)
    ended = {event.host for event in events if event.is_end}
    assert ended == {one.host.name for one in targets}
    assert max(event.share or 0 for event in events) == 1.0
