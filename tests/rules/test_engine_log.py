"""ENG-05: what an engine's log comes to, alone and beside what the host shows."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bringup.core.rules import Finding, Level, Status, judge
from bringup.flow.cases import case_world
from bringup.probes.evidence.world import world_of
from bringup.rules import CHECKS

from ..shipped import KINDS

NO_COMPILER = "RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda'\n"
NO_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 14.00 GiB.\n"
UP = "INFO:     Application startup complete.\n"
LOADS = "Loading safetensors checkpoint shards:  50% Completed | 48/96 [10:01<10:00, 12.5s/it]\n"
LOG = "docker logs serve"


def found(
    facts: Mapping[str, object], target: Mapping[str, object] | None = None
) -> Finding | None:
    findings = judge(CHECKS, case_world(facts, target, KINDS))
    return next((finding for finding in findings if finding.id == "ENG-05"), None)


def test_where_nobody_read_a_log_nothing_is_said() -> None:
    assert found({"nvidia-smi -L": "GPU 0: NVIDIA B200"}) is None


@pytest.mark.parametrize(
    ("log", "status", "level"),
    [
        (NO_COMPILER, Status.FAIL, Level.BLOCK),
        (NO_MEMORY, Status.FAIL, Level.BLOCK),
        (UP, Status.PASS, Level.OK),
        (NO_COMPILER + UP, Status.WARN, Level.WARN),
        (UP + NO_MEMORY, Status.FAIL, Level.BLOCK),
        (UP + "ValueError: an odd request\n", Status.WARN, Level.NOTE),
        ("Traceback (most recent call last):\nOddError: x\n", Status.WARN, Level.WARN),
        ("vllm.service: Failed with result 'exit-code'.\n", Status.WARN, Level.WARN),
        (LOADS, Status.UNKNOWN, Level.NOTE),
        ("hello\n", Status.UNKNOWN, Level.NOTE),
    ],
)
def test_a_log_alone(log: str, status: Status, level: Level) -> None:
    finding = found({LOG: log})
    assert finding is not None
    assert (finding.status, finding.level) == (status, level), finding.evidence


def test_a_cause_comes_with_its_line_its_reason_and_a_command() -> None:
    finding = found({LOG: NO_COMPILER})
    assert finding is not None
    assert finding.evidence[0] == f"{LOG}: {NO_COMPILER.strip()}"
    assert "FlashInfer finds no nvcc" in finding.evidence[1]
    assert "bringup provision --host HOST --check" in finding.remedy


def test_a_start_that_ends_without_a_word_that_is_known_is_a_warning() -> None:
    finding = found({"vllm serve /models/example": {"rc": 1, "stdout": "hello\nbye\n"}})
    assert finding is not None
    assert (finding.status, finding.evidence) == (
        Status.WARN,
        ("vllm serve /models/example: bye",),
    )


def test_a_row_about_another_engine_does_not_speak() -> None:
    log = {LOG: "SymmMemCommunicator: Device capability 10.3 not supported\n"}
    one, other = found(log, {"engine": "vllm"}), found(log, {"engine": "sglang"})
    assert one is not None
    assert other is not None
    assert (one.status, other.status) == (Status.WARN, Status.UNKNOWN)


def test_a_passing_moment_does_not_outweigh_the_log() -> None:
    smi = "nvidia-smi --query-compute-apps=pid,used_memory,process_name --format=csv,noheader"
    finding = found({LOG: NO_MEMORY, smi: "", "nvidia-smi -L": "GPU 0: NVIDIA B200"})
    assert finding is not None
    assert (finding.status, finding.level) == (Status.FAIL, Level.BLOCK)


def test_a_log_that_nobody_explained_proves_nothing() -> None:
    findings = judge(CHECKS, world_of({LOG: NO_COMPILER}, None, KINDS))
    (finding,) = (one for one in findings if one.id == "ENG-05")
    assert (finding.status, finding.level) == (Status.UNKNOWN, Level.NOTE)
