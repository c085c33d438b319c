"""From the words of a command line to the fixes that are wanted."""

from __future__ import annotations

from ..core.errors import UsageError
from ..core.fixes import LEVELS, Choice
from ..core.nearest import did_you_mean
from ..decide import JOINT_RULES, RULES
from ..options.fixing import Fixing
from ..remedies.table import known_ids
from ..rules import CHECKS


def choice_of(said: Fixing, plan: str = "") -> Choice | None:
    """Return the choice, None where nothing is to be fixed; raises UsageError for a wrong word."""
    ids = tuple(id_.strip() for word in said.fix_only for id_ in word.split(",") if id_.strip())
    level = said.fix_level
    if level not in LEVELS:
        raise UsageError(
            f"cannot fix at level {level!r}: there is no such level",
            remedy=f"give one of {', '.join(LEVELS)}; each takes in those before it",
        )
    if not said.fix and not ids:
        return None
    if plan:
        raise UsageError(
            "cannot fix while a saved plan is applied: facts are read anew after each fix",
            remedy="fix first, then make the plan",
        )
    rules = {row.id for row in (*CHECKS, *RULES)} | {row.id for row in JOINT_RULES}
    known = rules | set(known_ids())
    for id_ in ids:
        if id_ not in known:
            raise UsageError(
                f"cannot fix {id_!r}: no such finding{did_you_mean(id_, known)}",
                remedy="bringup provision --check shows the findings of a host",
            )
    return Choice(ids, LEVELS[level])
