"""Verbs that tell how far a deployment has come up, and what stands in its way."""

from __future__ import annotations

from typing import Annotated

from ..core.errors import Exit, UsageError
from ..core.verb import Help, Verb
from ..report_screen import Screen


def diagnose(
    screen: Screen,
    *,
    log: Annotated[tuple[str, ...], Help("log file, - for standard input; repeatable")] = (),
    engine: Annotated[str, Help("leave out causes of other engines, as dynamo.sglang")] = "",
) -> Exit:
    """Name what a log of an engine, frontend, container or driver tells: cause, why, what to do.

    Works on any log: causes come from a catalogue of known failures, each with its source. Exit
    codes: 0 a known cause was found, 1 none, 2 wrong input.
    """
    from ..flow_diagnose import diagnose_text, read_text
    from ..readiness.failures import Case
    from ..report_diagnose import diagnosis_view, match_document, unknown_view

    if not log:
        raise UsageError("cannot diagnose nothing", remedy="give --log FILE, or --log - for a pipe")
    found = [diagnose_text(source, read_text(source), Case(engine)) for source in log]
    for one in found:
        screen.show(f"\n{one.source}" if len(found) > 1 else "")
        screen.show(diagnosis_view(one.matches) if one.matches else unknown_view(one.said))
        screen.emit(
            {
                "schema": "bringup.diagnosis/1",
                "source": one.source,
                "causes": [match_document(match) for match in one.matches],
                "said": list(one.said),
            }
        )
    return Exit.DONE if all(one.matches for one in found) else Exit.FAILED


VERBS = (Verb("diagnose", diagnose, reads_only=True),)
