"""Plans: same inputs, same bytes; what is unknown counts as change."""

from __future__ import annotations

import json

from bringup.core import receipt as receipts
from bringup.core.plan import Plan, difference, document, plan_steps
from bringup.core.receipt import Outcome
from bringup.core.rules import Finding, Level, Status, Verdict, verdict
from bringup.core.script import Section
from bringup.core.steps import Observation, State, Step, observed
from bringup.steps.file import text_file

STEP = text_file("/opt/x.sh", "new\n", mode=0o755)


def finding(level: Level, status: Status = Status.FAIL) -> Finding:
    return Finding("X-01", "title", status, level, "h", ("line",), "because", "do", "src")


def plan(*steps: Step, seen: dict[str, Observation] | None = None) -> Plan:
    return Plan("h", "0", "inv", "sha256:0", (), (), plan_steps(steps, seen or {}))


def test_a_step_nobody_observed_is_unknown_and_counts_as_change() -> None:
    (planned,) = plan(STEP).changes
    assert planned.observation.state is State.UNKNOWN


def test_a_step_that_is_as_wanted_is_no_change() -> None:
    seen = observed(STEP, Section(STEP.id, 0, STEP.wanted))
    assert plan(STEP, seen={STEP.id: seen}).changes == ()


def test_an_observation_that_timed_out_is_unknown_not_change() -> None:
    assert observed(STEP, Section(STEP.id, 124, "")).state is State.UNKNOWN


def test_the_same_plan_gives_the_same_bytes_and_holds_no_content() -> None:
    one, two = plan(STEP), plan(STEP)
    assert json.dumps(document(one)) == json.dumps(document(two))
    assert one.digest == two.digest
    assert "new\\n" not in json.dumps(document(one))


def test_the_difference_shows_old_and_new_lines() -> None:
    seen = observed(STEP, Section(STEP.id, 0, "file 755 0123\nold\n"))
    (planned,) = plan_steps((STEP,), {STEP.id: seen})
    assert difference(planned).splitlines()[-2:] == ["-old", "+new"]


def test_a_new_file_differs_from_nothing() -> None:
    (planned,) = plan_steps((STEP,), {STEP.id: observed(STEP, Section(STEP.id, 0, "absent"))})
    assert difference(planned).startswith("--- /dev/null\n+++ /opt/x.sh\n")


def test_a_receipt_starts_with_what_is_not_reached() -> None:
    blank = receipts.blank(plan(STEP), operator="me", began="2026-01-01T00:00:00Z")
    assert [done.outcome for done in blank.steps] == [Outcome.NOT_REACHED]
    marked = receipts.mark(blank, STEP.id, Outcome.CHANGED, seconds=1.0)
    assert receipts.log_line(marked).count("1 changed") == 1


def test_verdicts_are_the_gravest_finding() -> None:
    assert verdict([]) is Verdict.READY
    assert verdict([finding(Level.NOTE)]) is Verdict.READY
    assert verdict([finding(Level.WARN)]) is Verdict.DEGRADED
    assert verdict([finding(Level.WARN), finding(Level.BLOCK)]) is Verdict.BLOCKED
    assert verdict([finding(Level.BLOCK, Status.UNKNOWN)]) is Verdict.UNKNOWN
