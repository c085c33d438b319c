"""The texts that carry actions: plain sh, and no value of ours is ever read as sh."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bringup.core.remote import Result
from bringup.core.steps import Push, Run, Write
from bringup.core.words import HostPath
from bringup.edge import failures, hostscripts
from bringup.edge.host_files import tar_of, tar_size, trip, write_script

WRITE = Write(HostPath("/etc/a b"), b"x", owner="root:root")
ODD = Write(HostPath("/opt/x\\2dy"), b"y")
PUSH = Push(HostPath("/opt/it's"), "archive", "0" * 64)

SCRIPTS = {
    "run": hostscripts.run_script(Run(("echo", "a b", HostPath("/x"))), root="/host"),
    "write": write_script(trip((WRITE, ODD)), root="/host", nonce="n1"),
    "push": hostscripts.push_script(PUSH, root="/", unpack="gzip -dc"),
    "lock": hostscripts.lock_script("me; rm -rf /", root="/", nonce="n1", silence_s=90),
    "bounded": hostscripts._BOUNDED,
    "watched": hostscripts._WATCHED,
}

SPLIT_ON_PURPOSE = "SC2086,SC2046"
"""Words that are split by intent: a limit that may be empty, an unpacker with its option."""

UNUSED_ON_PURPOSE = "SC2034,SC2154,SC2329,SC2317"
"""Fields of /proc/PID/stat that must be read to get past them; functions called by name."""


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_passes_shellcheck(name: str) -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run(
        [shellcheck, "-s", "sh", "-e", f"{SPLIT_ON_PURPOSE},{UNUSED_ON_PURPOSE}", "-"],
        input=SCRIPTS[name], text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert done.stdout == ""


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_any_word_comes_out_of_a_run_script_as_it_went_in(word: str) -> None:
    script = hostscripts.run_script(Run(("echo", word)), root="/")
    assert shlex.split(script)[-1] == word


PATHS = st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1)


@given(st.dictionaries(PATHS, st.binary(max_size=2000), max_size=5))
def test_size_of_a_tar_is_known_before_it_is_made(contents: dict[str, bytes]) -> None:
    files = [Write(HostPath(f"/{name}"), content) for name, content in contents.items()]
    assert tar_size(trip(files)) == sum(map(len, tar_of(trip(files))))


def test_files_of_one_folder_travel_as_one_group() -> None:
    files = [Write(HostPath(f"/opt/{n}"), b"", 0o600 + n) for n in range(5)]
    assert len(trip((*files, Write(HostPath("/etc/x"), b"")))) == 2
    assert len(trip((*files, WRITE, ODD))) == 3


def test_sudo_gets_a_short_command_line_without_the_script() -> None:
    shipment = hostscripts.bounded("echo private", seconds=5, sudo=True)
    assert shipment.words[:3] == ("sudo", "-n", "--")
    assert "private" not in " ".join(shipment.words)
    assert b"private" in shipment.prefix
    assert shipment.words[-1] == str(len(shipment.prefix))


@pytest.mark.parametrize(("seconds", "words"), [(0.2, "1"), (1.6, "2"), (60, "60")])
def test_limit_is_whole_seconds_and_never_none(seconds: float, words: str) -> None:
    assert hostscripts.bounded("true", seconds=seconds).words[4] == words


# What a failure means


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("tar: x: No space left on device\nbringup: unpack: /etc/a", "the disk is full"),
        ("mkdir: Permission denied\nbringup: stage: /etc/a", "the login may not write there"),
        ("mkdir: Read-only file system\nbringup: folder: /etc/a", "the file system is read-only"),
        ("bringup: link: /etc/a -> /etc/b", "it is a symbolic link (/etc/b)"),
        ("chown: invalid user: 'x'\nbringup: owner: /etc/a (x)", "no such user or group"),
        ("chown: Operation not permitted\nbringup: owner: /etc/a (x)", "may not do that"),
        ("sha256sum: no match\nbringup: sum: /etc/a", "it arrived damaged"),
        ("something new", "the command failed"),
    ],
)
def test_failed_write_is_explained_by_what_the_host_said(said: str, why: str) -> None:
    fault = failures.of_write("h1", (WRITE,), Result(1, "", said))
    assert re.match(r"cannot write /etc/a( b)? on h1: ", fault.message)
    assert why in fault.message
    assert fault.remedy
    assert "bringup:" not in fault.said


def test_write_out_of_time_is_told_from_a_failed_one() -> None:
    fault = failures.of_write("h1", (WRITE,), Result(124, "", ""))
    assert "it took too long" in fault.message


WARNING = "sudo: unable to resolve host b300-04: Name or service not known"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("sudo: a password is required", "sudo asks for a password"),
        ("sudo: sorry, you must have a tty to run sudo", "sudo wants a terminal"),
        ("sudo: ein Passwort ist notwendig", "sudo asks for a password"),
        (f"{WARNING}\nsudo: a password is required", "sudo asks for a password"),
        ("sh: 1: exec: sudo: not found", "sudo is not installed there"),
        ("bash: line 1: exec: sudo: not found", "sudo is not installed there"),
        ("Sorry, user ann is not allowed to execute '/bin/sh'", "does not let ann run sh"),
    ],
)
def test_refusal_of_sudo_is_explained(said: str, why: str) -> None:
    fault = failures.of_sudo("h1", "ann", Result(1, "", said))
    assert fault is not None
    assert why in fault.message


@pytest.mark.parametrize(
    "result",
    [
        Result(1, "out", "sudo: x"),
        Result(1, "", "grep: x"),
        Result(0, "", WARNING),
        Result(1, "", WARNING),
        Result(2, "", f"{WARNING}\ngrep: x"),
    ],
)
def test_failure_of_the_command_is_not_blamed_on_sudo(result: Result) -> None:
    assert failures.of_sudo("h1", "ann", result) is None
