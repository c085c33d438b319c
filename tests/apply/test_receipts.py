"""A receipt is there before the change it tells of, however the run ends."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bringup.core.errors import StalePlan, Unreachable, UsageError
from bringup.core.host import Host, Login
from bringup.core.plan import Plan, plan_steps
from bringup.core.receipt import SCHEMA
from bringup.core.remote import Looking, Result, Traffic
from bringup.core.steps import Run, Step, Write
from bringup.edge.local import LocalRemote
from bringup.edge.render import Renderer
from bringup.edge.store import Store, load_document
from bringup.flow.apply import apply, observe
from bringup.flow.types import Tools
from bringup.flow.undo import undo
from bringup.steps.file import text_file

AT = "2026-01-02T03:04:05Z"
STEP = text_file("/etc/wanted.conf", "as it should be\n")


class Cut(Exception):
    """The controller dies here."""


class CutRemote(LocalRemote):
    """A remote whose run is cut off at a chosen place."""

    before_write: Callable[[], None] = staticmethod(lambda: None)
    after_write: Callable[[], None] = staticmethod(lambda: None)
    before_run: Callable[[], None] = staticmethod(lambda: None)

    def write(self, files: tuple[Write, ...], **more: object) -> Result:
        self.before_write()
        done = super().write(files, **more)  # type: ignore[arg-type]
        self.after_write()
        return done

    def run(self, action: Run, **more: object) -> Result:
        self.before_run()
        return super().run(action, **more)  # type: ignore[arg-type]


@dataclass
class Desk:
    host: Host
    remote: CutRemote
    tools: Tools

    def plan(self, *steps: Step) -> Plan:
        wanted = steps or (STEP,)
        seen = observe(self.tools, Looking(self.remote), self.host, wanted)
        return Plan(self.host.name, "", "", "", (), (), plan_steps(wanted, seen))

    def outcomes(self) -> list[str]:
        (path,) = self.tools.store.receipts(self.host.name)
        return [step["outcome"] for step in load_document(path, SCHEMA)["steps"]]

    @property
    def file(self) -> Path:
        return Path(self.host.root) / "etc/wanted.conf"


@dataclass
class OneFleet:
    one: CutRemote

    def remote(self, name: str) -> CutRemote:
        return self.one

    def traffic(self) -> dict[str, Traffic]:
        return {}

    def close(self) -> None:
        """Nothing was opened."""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "root/etc").mkdir(parents=True)
    (tmp_path / "root/var/log").mkdir(parents=True)
    host = Host("here", Login("127.0.0.1"), root=str(tmp_path / "root"))
    remote = CutRemote(host)
    numbers = itertools.count()
    tools = Tools(
        OneFleet(remote), Renderer(tmp_path), Store(tmp_path / "state"),
        lambda: AT, lambda: f"n{next(numbers)}", "tests", "0",
    )  # fmt: skip
    return Desk(host, remote, tools)


def cut() -> None:
    raise Cut


def test_a_run_cut_off_before_its_write_left_a_receipt_that_says_begun(desk: Desk) -> None:
    desk.remote.before_write = cut
    with pytest.raises(Cut):
        apply(desk.tools, desk.host, desk.plan())
    assert desk.outcomes() == ["begun"]


def test_what_a_run_wrote_before_it_was_cut_off_is_taken_back_by_undo(desk: Desk) -> None:
    desk.file.write_text("as it was\n")
    desk.remote.after_write = cut
    with pytest.raises(Cut):
        apply(desk.tools, desk.host, desk.plan())
    assert desk.file.read_text() == "as it should be\n"
    del desk.remote.after_write
    (undone,) = undo(desk.tools, (desk.host,), to="", check=False)
    assert undone.ended.error is None
    assert desk.file.read_text() == "as it was\n"


def test_a_step_that_stopped_midway_is_named_and_left_to_a_person(desk: Desk) -> None:
    desk.remote.before_write = cut
    with pytest.raises(Cut):
        apply(desk.tools, desk.host, desk.plan())
    desk.file.write_text("half of\n")
    (undone,) = undo(desk.tools, (desk.host,), to="", check=False)
    assert undone.ended.error is None
    assert [way.why_not.split(":")[0] for way in undone.left] == [
        "its step did not end, and it is now"
    ]
    assert desk.file.read_text() == "half of\n"


def test_a_line_that_drops_before_the_log_leaves_a_whole_receipt(desk: Desk) -> None:
    def drop() -> None:
        raise Unreachable("cannot go on with here: the line is lost", host="here")

    desk.remote.before_run = drop
    receipt, record, error = apply(desk.tools, desk.host, desk.plan())
    assert isinstance(error, Unreachable)
    assert receipt.counts == {"changed": 1}
    assert desk.outcomes() == ["changed"]
    assert Path(record).exists()


def test_a_failed_run_stands_in_the_log_of_the_host(desk: Desk) -> None:
    plan = desk.plan()
    desk.file.mkdir()
    _, _, error = apply(desk.tools, desk.host, plan)
    assert error is not None
    assert "1 failed" in (Path(desk.host.root) / "var/log/bringup.log").read_text()


def test_one_file_that_cannot_be_written_is_not_blamed_on_its_neighbours(desk: Desk) -> None:
    steps = [text_file(f"/etc/{name}/wanted.conf", "x\n") for name in ("one", "two", "three")]
    plan = desk.plan(*steps)
    (Path(desk.host.root) / "etc/two/wanted.conf").mkdir(parents=True)
    receipt, _, error = apply(desk.tools, desk.host, plan)
    assert error is not None
    assert "/etc/two/wanted.conf" in error.message
    assert [done.outcome.value for done in receipt.steps] == ["changed", "failed", "not reached"]


def test_undo_said_again_takes_back_the_next_older_change(desk: Desk) -> None:
    desk.file.write_text("first\n")
    for text in ("second\n", "third\n"):
        apply(desk.tools, desk.host, desk.plan(text_file("/etc/wanted.conf", text)))
    stands = []
    for _ in range(3):
        (undone,) = undo(desk.tools, (desk.host,), to="", check=False)
        assert undone.ended.error is None
        stands.append((desk.file.read_text(), len(undone.gone)))
    assert stands == [("second\n", 0), ("first\n", 1), ("first\n", 2)]


def test_undo_without_a_receipt_names_the_folder_that_was_searched(desk: Desk) -> None:
    (undone,) = undo(desk.tools, (desk.host,), to="", check=False)
    error = undone.ended.error
    assert isinstance(error, UsageError)
    assert str(desk.tools.store.folder / "receipts/here") in error.message
    assert "--state" in error.remedy


def test_undo_of_a_file_that_somebody_edited_names_the_command_that_shows_it(desk: Desk) -> None:
    apply(desk.tools, desk.host, desk.plan())
    desk.file.write_text("by hand\n")
    (undone,) = undo(desk.tools, (desk.host,), to="", check=False)
    assert isinstance(undone.ended.error, StalePlan)
    assert "ssh here 'cat /etc/wanted.conf'" in undone.ended.error.remedy
