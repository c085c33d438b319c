"""Lines of logs as people get them: whole, so that a search finds them."""

from __future__ import annotations

import io

from bringup.core.reading import Known, Reading, Unknown
from bringup.readiness.diagnosis import Diagnosis
from bringup.report.diagnose import diagnosis_block
from bringup.report.screen import PeopleScreen
from bringup.report.serve import logs_view

LONG = "server_args=ServerArgs(" + " ".join(f"--flag-{number} {number}" for number in range(40))


def printed(*views: object) -> list[str]:
    out = io.StringIO()
    PeopleScreen(out, io.StringIO()).show(*views)  # type: ignore[arg-type]
    return out.getvalue().splitlines()


def test_a_long_line_of_a_log_stays_one_line() -> None:
    found: dict[str, Reading[tuple[str, ...]]] = {
        "h1/decode": Known((LONG,)),
        "h2/prefill": Unknown("no answer"),
    }
    lines = printed(logs_view(found))
    assert lines == ["h1/decode", f"  {LONG}", "h2/prefill", "  unknown: no answer"]


def test_last_words_of_an_unknown_death_stay_whole() -> None:
    lines = printed(diagnosis_block(Diagnosis("log", (), (LONG,)), with_source=False))
    assert f"            {LONG}" in lines
    assert lines[0].startswith("  unknown")


def test_a_worker_that_loads_has_not_failed() -> None:
    loading = Diagnosis("h1/decode", (), (LONG,), "loads: weights 3/96", is_loading=True)
    text = "\n".join(printed(diagnosis_block(loading, with_source=True)))
    assert "no known cause" not in text
    assert LONG in text
