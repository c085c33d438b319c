"""What the answers about containers, processes and units mean."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bringup.core.host import Mode
from bringup.core.reading import Known, Unknown
from bringup.core.script import Section, compose, split
from bringup.readiness.engine_log import progress
from bringup.readiness.log_lines import lines_of
from bringup.readiness.stages import Run, Worker
from bringup.readiness.worker_ask import asks, log_name, parse_run
from bringup.readiness.worker_image import apart, drift
from bringup.readiness.worker_log import LOG_BYTES, parse_log

BOX = Worker("h1", "decode", Mode.DECODE, "k3-decode", "/s.sh", "sha256:c")
PROCESS = replace(BOX, contained=False)
UNIT = replace(PROCESS, unit="k3-decode.service")


def section(*lines: str, code: int | None = 0) -> Section:
    return Section("run", code, "\n".join(lines))


def state(**more: object) -> str:
    base = {"Status": "running", "OOMKilled": False, "ExitCode": 0, "Error": "",
            "StartedAt": "2026-09-01T08:00:00.123456789Z"}  # fmt: skip
    return json.dumps(base | more)


def test_a_running_container_tells_its_age_and_configuration() -> None:
    found = parse_run(BOX, section(state(), "0 sha256:c", "1788249610"))
    assert isinstance(found, Known)
    assert found.value.config == "sha256:c"
    assert found.value.age_s == pytest.approx(9.88, abs=0.1)


def test_an_exited_container_tells_its_code_and_whether_memory_ended_it() -> None:
    found = parse_run(BOX, section(state(Status="exited", ExitCode=137, OOMKilled=True), "2 ", "1"))
    assert found == Known(
        Run("exited", 137, oom=True, count=2, started="2026-09-01T08:00:00.123456789Z"),
        section(state(Status="exited", ExitCode=137, OOMKilled=True)).first,
    )


def test_a_container_without_our_label_has_no_configuration() -> None:
    found = parse_run(BOX, section(state(), "0 <no value>", "1788249610"))
    assert isinstance(found, Known)
    assert found.value.config == ""


@pytest.mark.parametrize(
    "answer",
    [section(code=None), section("Cannot connect to the Docker daemon", code=70), section("odd")],
)
def test_an_engine_that_does_not_answer_is_unknown_not_gone(answer: Section) -> None:
    assert isinstance(parse_run(BOX, answer), Unknown)


def test_gone_is_an_answer() -> None:
    assert parse_run(BOX, section("gone")) == Known(Run("gone"), "gone")


def test_a_unit_that_was_killed_tells_the_signal() -> None:
    found = parse_run(UNIT, section(
        "LoadState=loaded", "ActiveState=failed", "Result=signal", "NRestarts=0",
        "ExecMainStatus=9", "ExecMainCode=2", "ExecMainStartTimestampMonotonic=5000000",
        "100.0 90.0",
    ))  # fmt: skip
    assert isinstance(found, Known)
    assert (found.value.status, found.value.exit) == ("exited", 137)


def test_a_unit_that_is_not_there_is_gone() -> None:
    found = parse_run(UNIT, section("LoadState=not-found", "ActiveState=inactive", "1 1"))
    assert isinstance(found, Known)
    assert found.value.status == "gone"


def test_lines_of_a_container_are_told_once() -> None:
    one = "2026-09-01T08:00:00.000000001Z first"
    two = "2026-09-01T08:00:01.000000002Z second"
    first = parse_log(BOX, Section("log", 0, f"cut off\n{one}\n"), "")
    assert first.lines == ("first",)
    again = parse_log(BOX, Section("log", 0, f"{one}\n{two}\n"), first.cursor)
    assert (again.lines, again.cursor) == (("second",), "2026-09-01T08:00:01.000000002Z")


def test_an_answer_that_was_cut_off_moves_no_cursor() -> None:
    assert parse_log(BOX, Section("log", None, "x"), "c").cursor == "c"


def read(worker: Worker, cursor: str) -> tuple[tuple[str, ...], str]:
    """Run the log question of a process for real, under the shell that hosts have."""
    question = asks(worker, cursor)[1]
    script = compose([question], nonce="n")
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    said = split(done.stdout.decode(), nonce="n")
    tail = parse_log(worker, said[log_name(worker)], cursor)
    return tuple(line for line in tail.lines if line), tail.cursor


def test_a_log_file_is_read_on_and_read_anew_when_it_was_started_anew(tmp_path: Path) -> None:
    file = tmp_path / "w.log"
    worker = replace(PROCESS, log_file=str(file))
    assert read(worker, "") == ((), "0")
    file.write_text("one\ntwo\n")
    lines, cursor = read(worker, "")
    assert lines == ("one", "two")
    with file.open("a") as more:
        more.write("three\n")
    assert read(worker, cursor)[0] == ("three",)
    file.write_text("new\n")
    assert read(worker, cursor)[0] == ("new",)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Worker]:
    """A process that runs, with its state file, and a log for a test to write."""
    with subprocess.Popen(["sleep", "600"]) as process:
        since = Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2].split()[19]
        (tmp_path / "w.pid").write_text(f"{process.pid} {since} sha256:c\n")
        yield replace(PROCESS, log_file=str(tmp_path / "w.log"), state_file=str(tmp_path / "w.pid"))
        process.kill()


QUOTED = (
    b"2026-09-01 08:00:00 INFO client said: ",
    b"torch.OutOfMemoryError: CUDA out of memory\n",
)


def test_half_a_line_is_not_told_before_its_end_is_there(writer: Worker) -> None:
    """Behind the cut an INFO line's quotation would stand as an error of its own."""
    file = Path(writer.log_file)
    file.write_bytes(b"whole\n" + QUOTED[0])
    lines, cursor = read(writer, "")
    assert (lines, cursor) == (("whole",), "6")
    with file.open("ab") as more:
        more.write(QUOTED[1])
    assert read(writer, cursor)[0] == (b"".join(QUOTED).decode().strip(),)


def test_a_bar_that_rewrites_its_line_is_seen_but_for_the_count_that_is_being_written(
    writer: Worker,
) -> None:
    file = Path(writer.log_file)
    bar = "\rLoading weights: |#| {}/161"
    file.write_text(bar.format(1) + bar.format(2)[:-2])
    (line,), cursor = read(writer, "")
    assert (progress(lines_of(line)).done, progress(lines_of(line)).total) == (1, 161)
    file.write_text(bar.format(1) + bar.format(2) + "\r")
    (line,), _ = read(writer, cursor)
    assert progress(lines_of(line)).done == 2


@pytest.mark.parametrize("why", ["ended", "quiet"])
def test_last_words_without_an_end_are_told_once_nobody_goes_on_with_them(
    writer: Worker, why: str
) -> None:
    file = Path(writer.log_file)
    file.write_bytes(b"whole\nKilled")
    if why == "ended":
        Path(writer.state_file).write_text("1 1 sha256:c\n")
    else:
        os.utime(file, (1, 1))
    assert read(writer, "") == (("whole", "Killed"), "12")


def test_a_log_that_is_too_long_begins_with_a_whole_line(writer: Worker) -> None:
    file = Path(writer.log_file)
    line = b"INFO 0123456789 quotes: CUDA out of memory\n"
    file.write_bytes(line * (LOG_BYTES // len(line) + 5))
    assert {*read(writer, "")[0]} == {line.decode().strip()}
    size = file.stat().st_size
    assert {*read(writer, str(size - 3 * len(line)))[0]} == {line.decode().strip()}


def test_a_journal_that_is_too_long_begins_with_a_whole_line() -> None:
    text = "alf a line\n" + "whole\n" * (LOG_BYTES // 6)
    assert {*parse_log(UNIT, Section("log", 0, text[:LOG_BYTES]), "").lines[:-1]} == {"whole"}


IDS = ("sha256:" + "a" * 64, "sha256:" + "b" * 64)
MOVED = "runs image aaaaaaaaaaaa, k3:1 stands for bbbbbbbbbbbb by now"


@pytest.mark.parametrize(
    ("line", "image", "told"),
    [
        (f"held {IDS[0]} {IDS[1]}", "k3:1", (MOVED,)),
        (f"held {IDS[0]} {IDS[0]}", "k3:1", ()),
        ("held ", "k3:1", ()),
        (f"held {IDS[0]} {IDS[1]}", "sha256:cc", ()),
    ],
    ids=["moved", "same", "cannot be told", "pinned"],
)  # fmt: skip
def test_only_a_tag_that_surely_moved_is_drift(
    line: str, image: str, told: tuple[str, ...]
) -> None:
    worker = replace(BOX, image=image)
    found = parse_run(worker, section(state(), "0 sha256:c", "1788249610", line, "context "))
    assert isinstance(found, Known)
    assert drift(worker, found.value) == told


# containerd's store, as Docker 29 has it by default: IDs are digests of manifests. The container's
# image is there under the ID that the container tells, under another one, or not at all.
STORE = """#!/bin/sh
case "$*" in
ps*) echo c1 ;;
inspect*) printf '%s\\n' '{state}' "0 sha256:c" "sha256:manifest k3:1" "" ;;
"image inspect --format {{{{.Id}}}} sha256:manifest k3:1") {ids} ;;
esac
"""


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        ("echo sha256:index; echo sha256:index", False),
        ("echo sha256:manifest; echo sha256:newer", True),
        ("echo sha256:newer; echo 'no such image' >&2; exit 1", False),
    ],
    ids=["one image by two IDs", "another image", "an image that is gone"],
)
def test_ids_are_compared_as_the_hosts_own_engine_resolves_them(
    tmp_path: Path, ids: str, told: bool
) -> None:
    program = tmp_path / "docker"
    program.write_text(STORE.format(state=state(), ids=ids))
    program.chmod(0o755)
    worker = replace(BOX, image="k3:1", engine=str(program))
    script = compose([asks(worker)[0]], nonce="n")
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    found = parse_run(worker, split(done.stdout.decode(), nonce="n")["run:k3-decode"])
    assert isinstance(found, Known)
    assert bool(drift(worker, found.value)) is told


def test_workers_of_an_older_build_are_behind_and_those_of_the_newest_are_not() -> None:
    old, new = (replace(BOX, host=host, image="k3:1") for host in ("h1", "h2"))
    runs = [
        (old, Run("running", config="c", context="sha256:" + "1" * 64)),
        (new, Run("running", config="c", context="sha256:" + "2" * 64)),
    ]
    told = apart(runs, ["sha256:" + "2" * 64, "sha256:" + "1" * 64])
    assert told == {"h1/decode": "runs build 111111111111, h2/decode a newer one, 222222222222"}


def test_images_that_bringup_did_not_build_are_not_compared_between_hosts() -> None:
    other = replace(BOX, host="h2", image="k3:1")
    runs = [
        (replace(BOX, image="k3:1"), Run("running", config="c")),
        (other, Run("running", config="c", context="sha256:2")),
    ]
    assert apart(runs, []) == {}
