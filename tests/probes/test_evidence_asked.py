"""Command lines taken apart."""

from __future__ import annotations

import pytest

from bringup.probes.evidence import Asked, asked


def one(line: str) -> Asked:
    return asked(line)[-1]


@pytest.mark.parametrize(
    ("line", "program", "words"),
    [
        ("nvidia-smi -L", "nvidia-smi", ("-L",)),
        ("sudo -n /usr/bin/nvidia-smi -q", "nvidia-smi", ("-q",)),
        ("LC_ALL=C timeout 10 ibstat", "ibstat", ()),
        ("bash -c 'nvcc --version'", "nvcc", ("--version",)),
        ("cat /proc/modules", "cat", ("/proc/modules",)),
        ("tail -n 6 /var/log/apt/history.log", "cat", ("/var/log/apt/history.log",)),
        ("command -v nvcc", "command", ("-v", "nvcc")),
        ("sudo -n true", "sudo", ("-n", "true")),
        ("env", "env", ()),
        ("nvidia-smi 2>/dev/null", "nvidia-smi", ()),
    ],
)
def test_wrappers_fall_away(line: str, program: str, words: tuple[str, ...]) -> None:
    assert (one(line).program, one(line).words) == (program, words)


def test_a_grep_behind_a_pipe_is_a_pattern() -> None:
    found = one("dmesg | grep -i xid")
    assert found.program == "dmesg"
    assert found.matches("NVRM: Xid (PCI:0000:ae:00): 79")


def test_a_grep_of_a_file_reads_that_file() -> None:
    found = one("grep -E 'MemTotal|MemAvailable' /proc/meminfo")
    assert (found.program, found.path) == ("cat", "/proc/meminfo")
    assert found.matches("MemAvailable:  5 kB")


def test_counting_is_told_apart_from_listing() -> None:
    assert one("lspci | grep -i -c 'nvidia.*B200'").is_counted


@pytest.mark.parametrize(
    ("line", "place", "program"),
    [
        ("docker exec serve nvidia-smi -L", "container serve", "nvidia-smi"),
        ("docker exec serve sh -c 'ulimit -l'", "container serve", "ulimit"),
        ("docker run --rm --gpus all ubuntu:24.04 nvidia-smi -L", "image ubuntu:24.04",
         "nvidia-smi"),
        ("worker: ls /models/Example-K3", "worker", "ls"),
    ],
)  # fmt: skip
def test_the_place_is_where_the_program_ran(line: str, place: str, program: str) -> None:
    assert (one(line).place, one(line).program) == (place, program)


def test_both_halves_of_a_sequence_are_seen() -> None:
    assert [each.program for each in asked("uname -r; uptime && id")] == ["uname", "uptime", "id"]


@pytest.mark.parametrize("line", ["", "   ", "echo 'open", "| | |", "docker exec", "sudo", "a: "])
def test_a_line_that_makes_no_sense_is_no_error(line: str) -> None:
    asked(line)
