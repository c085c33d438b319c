"""Command lines taken apart."""

from __future__ import annotations

import pytest

from bringup.core.reading import Known, Unknown
from bringup.probes.driver import Driver
from bringup.probes.evidence import Asked, Output, asked, facts_of
from bringup.probes.evidence.asked import ended
from bringup.probes.evidence.loops import files_told, loop_of
from bringup.probes.evidence.nodes import node_of
from bringup.probes.identity import Identity
from bringup.probes.infiniband import InfiniBand
from bringup.probes.kernel import Modules


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


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("dmesg | tail", 10),
        ("dmesg | tail -50", 50),
        ("lsmod | head -n 5", 5),
        ("dmesg | tail -n +1", None),
        ("dmesg | head -c 100", 0),
        ("dmesg | head -n -3", 0),
    ],
)
def test_how_many_lines_head_and_tail_keep_is_told(line: str, kept: int | None) -> None:
    assert one(line).keeps == kept


@pytest.mark.parametrize(
    ("line", "hides"),
    [
        ("dmesg 2>/dev/null | grep -i xid", True),
        ("dmesg 2>&1 | grep -i xid", True),
        ("dmesg | grep -i xid", False),
        ("which nvcc 2>/dev/null || true", True),
        ("which nvcc || true", False),
        ("which nvcc 2>/dev/null", False),
    ],
)
def test_an_empty_answer_whose_errors_were_thrown_away_may_hide_one(line: str, hides: bool) -> None:
    assert asked(line)[0].hides(Output(0)) is hides


@pytest.mark.parametrize(
    ("line", "node", "rest"),
    [
        ("ssh gpu01 nvidia-smi -L", "gpu01", "nvidia-smi -L"),
        ("ssh -o BatchMode=yes -p 22 root@gpu01 'lsmod | head'", "gpu01", "lsmod | head"),
        ("gpu-01: ibstat", "gpu-01", "ibstat"),
        ("worker: ls /models", "", "worker: ls /models"),
        ("nvidia-smi -L", "", "nvidia-smi -L"),
        ("ssh gpu01 -- nvidia-smi -L", "gpu01", "nvidia-smi -L"),
        ("[root@gpu01 ~]# nvidia-smi -L", "gpu01", "nvidia-smi -L"),
        ("$ nvidia-smi -L", "", "nvidia-smi -L"),
    ],
)
def test_a_line_may_name_the_machine_that_it_ran_on(line: str, node: str, rest: str) -> None:
    assert node_of(line) == (node, rest)


def test_what_another_machine_told_is_not_the_hosts() -> None:
    facts = facts_of({
        "nvidia-smi -L": Output(0, "GPU 0: NVIDIA B200 (UUID: GPU-1)\n"),
        "ssh gpu02 lsmod": Output(0, "nvidia_uvm 1 0\n"),
    })  # fmt: skip
    assert isinstance(facts[Modules], Unknown)


@pytest.mark.parametrize(
    ("line", "text", "told"),
    [
        ("for d in /sys/class/infiniband/*; do echo $d; cat $d/ports/1/state; done",
         "/sys/class/infiniband/mlx5_0\n4: ACTIVE\n",
         [("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE")]),
        ("for f in /sys/class/net/*/mtu; do echo \"$f $(cat $f)\"; done",
         "/sys/class/net/ib0/mtu 4092\n", [("/sys/class/net/ib0/mtu", "4092")]),
        ("for i in $(seq 0 1); do cat /sys/class/infiniband/mlx5_$i/ports/1/rate; done",
         "400 Gb/sec (4X NDR)\n10 Gb/sec (4X SDR)\n",
         [("/sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)"),
          ("/sys/class/infiniband/mlx5_1/ports/1/rate", "10 Gb/sec (4X SDR)")]),
        ("for i in 0 1; do cat /sys/class/infiniband/mlx5_$i/ports/1/rate; done",
         "400 Gb/sec (4X NDR)\n", []),
        ("for d in /sys/class/infiniband/*; do cat $d/ports/1/state; done", "4: ACTIVE\n", []),
        ("for d in /sys/class/infiniband/*; do echo $d; cat $d/ports/1/state; done | sort",
         "/sys/class/infiniband/mlx5_0\n4: ACTIVE\n", []),
    ],
)  # fmt: skip
def test_a_loop_tells_what_its_names_tell(
    line: str, text: str, told: list[tuple[str, str]]
) -> None:
    loop = loop_of(line)
    assert loop is not None
    assert list(files_told(loop, text)) == told


@pytest.mark.parametrize(
    ("line", "stdout", "code"),
    [
        ("test -e /x && echo yes || echo no", "no\n", 1),
        ("test -e /x && echo yes || echo no", "yes\n", 0),
        ("which nvcc || echo none", "none\n", 1),
        ("which nvcc || echo none", "/usr/bin/nvcc\n", 0),
        ("nvidia-smi; echo rc=$?", "Failed to initialize NVML\nrc=18\n", 18),
    ],
)
def test_words_behind_a_command_tell_how_it_ended(line: str, stdout: str, code: int) -> None:
    command, output = ended(asked(line)[0], Output(0, stdout))
    assert (output.code, command.is_excused) == (code, False)


@pytest.mark.parametrize(
    "line", ["test -e /dev/nvidia-uvm; uptime", "command -v nvcc >/dev/null; true"]
)
def test_an_exit_code_of_another_command_proves_nothing(line: str) -> None:
    assert facts_of({line: Output(0, "")}).readings == {}


def test_a_quiet_grep_that_found_something_lists_nothing_as_missing() -> None:
    assert facts_of({"lsmod | grep -q nvidia_peermem": Output(0)}).readings == {}


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("kubectl -n a exec pod/serve-0 -c w -- nvidia-smi -L", "container serve-0"),
        ("docker compose -f x.yml exec -T serve nvidia-smi -L", "container serve"),
        ("nsenter -t 4242 -m nvidia-smi -L", "container PID 4242"),
        ("nsenter -t 1 -m nvidia-smi -L", "host"),
    ],
)
def test_what_is_entered_is_the_place(line: str, place: str) -> None:
    assert (one(line).place, one(line).program) == (place, "nvidia-smi")


@pytest.mark.parametrize("printed", ["660 root:video", "crw-rw---- root video"])
def test_a_mode_in_stats_own_form_closes_a_file(printed: str) -> None:
    facts = facts_of({
        "stat -c '%a %U:%G %n' /dev/nvidia0": Output(0, f"{printed} /dev/nvidia0\n"),
        "ls /dev/nvidia0": Output(0, "/dev/nvidia0\n"),
        "id": Output(0, "uid=1004(ada) gid=1004(ada) groups=1004(ada)\n"),
    })  # fmt: skip
    driver = facts[Driver]
    assert isinstance(driver, Known)
    assert driver.value.closed == ("/dev/nvidia0 (crw-rw---- root video)",)


def test_a_matrix_without_its_legend_names_no_device() -> None:
    text = "\tGPU0\tGPU1\tNIC0\nGPU0\t X \tNV18\tPIX\nGPU1\tNV18\t X \tSYS\n"
    assert not isinstance(facts_of({"nvidia-smi topo -m": Output(0, text)})[InfiniBand], Known)


def test_the_kernel_is_the_first_line_of_several_commands() -> None:
    identity = facts_of({"uname -r; uptime": Output(0, "6.8.0-45-generic\nup 3 min\n")})[Identity]
    assert isinstance(identity, Known)
    assert identity.value.kernel == "6.8.0-45-generic"
