"""The catalogue of failures: each row is told by its own sample, and by no healthy log."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bringup.bundle.doctor import ROWS as DOCTOR
from bringup.bundle.rules import ROWS as BUNDLE
from bringup.core.errors import UsageError
from bringup.core.rules import Finding, Level, Status
from bringup.core.verb import options
from bringup.edge.catalogue import failures, read_rows
from bringup.engines.check import KINDS
from bringup.image.checks import ROWS as IMAGE
from bringup.readiness.failures import Case, Failure, Match, diagnose, last_words
from bringup.rules import CHECKS
from bringup.rules.deployment import ROWS as DEPLOYMENT
from bringup.rules.fallbacks import ROWS as RULES
from bringup.verbs import collect

COMMAND = re.compile(r"\bbringup ([a-z]+(?:\.[a-z]+)?)((?: --[a-z-]+(?: |=)?[^ |-]*)*)")

SAMPLES = Path(__file__).parent / "samples"
HEALTHY = sorted(SAMPLES.glob("healthy-*.log"))
BY_ID = {failure.id: failure for failure in failures()}
IDS = {
    *(row.id for table in (DOCTOR, BUNDLE, IMAGE, CHECKS, DEPLOYMENT, RULES) for row in table),
    *KINDS,
}


def sample(name: str) -> str:
    return (SAMPLES / f"{name}.log").read_text()


def case(failure: Failure) -> Case:
    """The case that a row speaks of."""
    return Case(
        engine=next(iter(failure.engines), ""),
        versions={package: low for package, (low, _) in failure.versions.items()},
        given=failure.given,
        signs=frozenset(failure.signs),
    )


@pytest.mark.parametrize("failure", failures(), ids=lambda failure: failure.id)
def test_a_row_is_the_first_answer_to_its_own_sample(failure: Failure) -> None:
    log = sample(failure.id) if failure.says else ""
    found = diagnose(failures(), log, case(failure))
    assert [match.failure.id for match in found][:1] == [failure.id]


@pytest.mark.parametrize("failure", [f for f in failures() if f.says], ids=lambda f: f.id)
def test_evidence_is_a_line_of_the_log(failure: Failure) -> None:
    log = sample(failure.id)
    match = next(m for m in diagnose(failures(), log, case(failure)) if m.failure is failure)
    assert match.evidence.strip("…") in log.splitlines()[match.line - 1]


@pytest.mark.parametrize("path", HEALTHY, ids=lambda path: path.stem)
@pytest.mark.parametrize("engine", ["", "vllm", "dynamo.sglang"])
def test_nothing_certain_is_said_of_a_healthy_log(path: Path, engine: str) -> None:
    found = diagnose(failures(), path.read_text(), Case(engine))
    assert not [match for match in found if match.is_certain]


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("RuntimeError: CUDA error: system not yet initialized", "cuda-802"),
        ("h:1:1 [0] x.cc:9 NCCL WARN Cuda failure 802 'system not yet initialized'", "cuda-802"),
        ("nvidia-container-cli: initialization error: nvml error: driver/library version mismatch:"
         " unknown.", "driver-library-mismatch"),
        ("Scheduler watchdog timeout (self.watchdog_timeout=300.0, self.soft=False)",
         "watchdog-timeout"),
        ("h:1:1 [0] NCCL WARN NET/IB : Unable to open device mlx5_4", "nccl-ib-error"),
        ("NVRM: Xid (PCI:0000:1b:00): 48, pid=1, name=x, DBE", "gpu-ecc"),
        ("NVRM: Xid (PCI:0000:1b:00): 94, Contained: memory error", "gpu-ecc"),
        ("NVRM: Xid (PCI:0000:1b:00): 31, pid=7, MMU Fault", "illegal-memory-access"),
        ("ValueError: The checkpoint you are trying to load has model type `kimi_k3` but"
         " Transformers does not recognize this architecture.", "model-not-supported"),
        ("RuntimeError: Child process unexpectedly failed with exitcode=-9. pid=77",
         "host-out-of-memory"),
        ("Error 0: NATS error: nats: 'Authorization Violation'", "nats-refuses"),
    ],
    ids=lambda text: text[:30],
)  # fmt: skip
def test_other_spellings_of_a_wall_are_told_as_the_same(line: str, cause: str) -> None:
    assert ids(diagnose(failures(), line))[:1] == [cause]


SAID = [failure for failure in failures() if failure.says]

FOLLOW = {
    "nccl-failed": {"nccl-cannot-connect", "nccl-duplicate-gpu", "nccl-multicast"},
    "nixl-backend-failed": {"ucx-no-device", "ucx-no-transport"},
    "no-gpus-visible": {"cuda-802"},
    "no-gpu-runtime": {"driver-not-loaded"},
    "nvcc-too-old": {"deepgemm-compile"},
}
"""Rows that surely say something of the samples of others, which are their causes."""


@pytest.mark.parametrize("failure", SAID, ids=lambda failure: failure.id)
def test_the_sample_of_a_row_is_no_certain_sign_of_another(failure: Failure) -> None:
    found = diagnose(failures(), sample(failure.id), case(failure))
    others = {m.failure.id for m in found if m.is_certain and not m.follows} - {failure.id}
    assert {id_ for id_ in others if failure.id not in FOLLOW.get(id_, ())} == set()


def evidence(failure: Failure) -> str:
    found = diagnose(failures(), sample(failure.id), case(failure))
    return next(match.evidence for match in found if match.failure is failure)


@pytest.mark.parametrize("failure", SAID, ids=lambda failure: failure.id)
@pytest.mark.parametrize(
    "wrapped",
    [
        "INFO 09-01 08:12:10 [logger.py:43] Received request chatcmpl-1: prompt: '{}', params: x",
        "[2026-09-01 08:12:10] Receive: obj=GenerateReqInput(rid='a', text='{}')",
        """DEBUG body: {{"messages": [{{"role": "user", "content": "{}"}}]}}""",
    ],
)
def test_what_a_client_has_written_is_no_sign_of_anything(failure: Failure, wrapped: str) -> None:
    found = diagnose(failures(), wrapped.format(evidence(failure)), case(failure))
    assert not [match for match in found if match.failure.says]


@pytest.mark.parametrize("failure", SAID, ids=lambda failure: failure.id)
@pytest.mark.parametrize(
    "level", ["b300-04:88:88 [0] NCCL INFO ", "INFO 09-01 08:12:10 [x.py:1] ", "INFO: ",
              "2026-09-01 08:12:10,123 - INFO - ", "2026-09-01T08:12:10.123Z  INFO dynamo: "],
)  # fmt: skip
def test_what_is_told_at_level_info_is_never_certain(failure: Failure, level: str) -> None:
    found = diagnose(failures(), level + evidence(failure), case(failure))
    assert not [match for match in found if match.failure.says and match.is_certain]


def test_a_line_that_is_grave_shows_a_cause_rather_than_an_earlier_mere_one() -> None:
    grave = "RuntimeError: CUDA error: out of memory"
    (match,) = diagnose(failures(), f"INFO: {grave}\n{grave}")
    assert (match.line, match.is_certain) == (2, True)


def test_there_is_no_sample_without_a_row() -> None:
    named = {path.stem for path in SAMPLES.glob("*.log")} - {path.stem for path in HEALTHY}
    assert named <= set(BY_ID)


@pytest.mark.parametrize("failure", failures(), ids=lambda failure: failure.id)
def test_checks_of_a_row_exist(failure: Failure) -> None:
    assert set(failure.checks) <= IDS, set(failure.checks) - IDS


@pytest.mark.parametrize("failure", failures(), ids=lambda failure: failure.id)
def test_a_row_says_what_to_do_and_where_that_is_from(failure: Failure) -> None:
    assert len(failure.fix) > 20
    assert failure.command
    for source in failure.sources:
        assert source.startswith("https://") or source in ("K3 report", "2×B200 report")


def test_a_root_cause_comes_before_its_consequence() -> None:
    log = sample("scheduler-died") + sample("gpu-out-of-memory")
    assert [m.failure.id for m in diagnose(failures(), log)][:1] == ["gpu-out-of-memory"]


def test_a_row_of_another_engine_keeps_silent() -> None:
    log = sample("engine-ready-timeout")
    assert "gpu-memory-taken" not in ids(diagnose(failures(), log, Case("dynamo.sglang")))


def test_a_version_that_surely_differs_excludes_a_row_and_an_unknown_one_does_not() -> None:
    log = sample("attention-variable-ignored")
    assert "attention-variable-ignored" in ids(diagnose(failures(), log))
    old = Case(versions={"vllm": "0.12.0"})
    assert "attention-variable-ignored" not in ids(diagnose(failures(), log, old))


def test_a_finding_of_the_host_makes_a_likely_cause_certain() -> None:
    log = sample("fabric-not-ready")
    bare = diagnose(failures(), log)[0]
    finding = Finding("FAB-01", "", Status.FAIL, Level.BLOCK, "h1", ("In Progress",), "", "", "")
    backed = diagnose(failures(), log, Case(findings=(finding,)))[0]
    assert (bare.failure.id, bare.is_certain) == ("fabric-not-ready", False)
    assert (backed.failure.id, backed.is_certain) == ("fabric-not-ready", True)
    assert backed.backed_by == (finding,)


def test_the_command_names_what_the_line_named() -> None:
    match = diagnose(failures(), sample("port-taken"))[0]
    assert match.command == "ss -ltnp | grep -w '30000'"
    match = diagnose(failures(), sample("unknown-flag"))[0]
    assert match.command == "bringup explain --disaggregation-decode-extra-slots"


def test_colours_and_progress_bars_do_not_hide_a_line() -> None:
    log = "\x1b[31mbar 1%\rbar 2%\rRuntimeError: CUDA error: invalid device ordinal\x1b[0m\n"
    assert ids(diagnose(failures(), log)) == ["gpu-ordinal"]


def test_an_unknown_log_gives_its_last_telling_lines() -> None:
    lines = ["fine", "OddError: the flux is low", "fine too", "bye"]
    assert last_words(lines) == ("OddError: the flux is low", "fine too", "bye")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- {id: a, title: t, cause: c, fix: f, sources: [x], says: ['(']}", "regular expression"),
        (
            "- {id: a, title: t, cause: c, fix: f, sources: [x], says: ['(?i)x']}",
            "global flags",
        ),
        ("- {id: a, title: t, cause: c, fix: f, sources: [x], signs: [odd]}", "no sign 'odd'"),
        ("- {id: a, title: t, cause: c, fix: f, sources: [x]}", "nothing that would show it"),
        ("- {id: a, title: t, cause: c, fix: f, says: [x]}", "sources"),
        ("- {id: a, title: t, cause: c, fix: f, says: [x], sources: [x], why: no}", "why"),
    ],
)
def test_a_row_that_is_none_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "rows.yml"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        list(read_rows(path))


def ids(matches: tuple[Match, ...]) -> list[str]:
    return [match.failure.id for match in matches]


def test_verbs_and_options_that_rows_name_exist() -> None:
    common = {"--json", "--debug"}
    verbs = {verb.name: {o.flag for o in options(verb)} | common for verb in collect()}
    for failure in failures():
        for name, rest in COMMAND.findall(f"{failure.command} | {failure.fix}"):
            assert name in verbs, f"{failure.id}: bringup {name}"
            assert set(re.findall(r"--[a-z-]+", rest)) <= verbs[name], failure.id


@pytest.mark.parametrize(
    ("row", "stands_too"), [("worker-set-differs", True), ("flashinfer-no-nvcc", False)]
)
def test_how_things_stand_is_told_unless_a_log_surely_tells_why(row: str, stands_too: bool) -> None:
    gone = Case(signs=frozenset({"container.gone"}))
    found = [match.failure.id for match in diagnose(failures(), sample(row), gone)]
    assert found[0] == row
    assert ("not-there" in found) is stands_too
