"""Edits of files that others write too: from the text that stands there to the text wanted.

The new text is made on the controller from the observation, so that a plan can show it and a
receipt can keep the old one; on the host the file is replaced whole.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from .errors import Blocked
from .steps import Action, Observation, State, Step, Write
from .words import HostPath


def settled(step: Step, seen: Observation) -> tuple[Step, Observation]:
    """Return an edit as the plain write that it comes to; other steps as they are.

    What is written replaces what was seen, and nothing else: a file that somebody edits in the
    meantime is left alone (`Write.before`).

    Raises Blocked where the place holds no file, or its text cannot be edited.
    """
    if step.edit is None or seen.state is State.UNKNOWN:
        return replace(step, edit=None, actions=_bound(step, seen)), seen
    old = original(seen.found, seen.detail)
    if old is None:
        raise _blocked(step, f"it is no file that can be read whole: {seen.found}")
    try:
        new = step.edit(old)
    except ValueError as error:
        raise _blocked(step, str(error)) from error
    return _written(step, seen, old, new)


def original(found: str, detail: str) -> str | None:
    """Return the text of a file from its observation, or None where it is not exactly known.

    `found` is ``absent`` or ``file MODE [OWNER] SUM``. The last line feed is lost on the way, and
    the sum tells whether there was one.
    """
    if found == "absent":
        return ""
    kind, _, rest = found.partition(" ")
    texts = (detail, f"{detail}\n") if kind == "file" else ()
    sum_ = rest.rpartition(" ")[2]
    return next((t for t in texts if hashlib.sha256(t.encode()).hexdigest() == sum_), None)


def _written(step: Step, seen: Observation, old: str, new: str) -> tuple[Step, Observation]:
    mode, owner = _mode_and_owner(seen.found)
    sum_ = hashlib.sha256(new.encode()).hexdigest()
    wanted = f"file {mode:o} {owner} {sum_}"
    place = HostPath(step.id.removeprefix("file:"))
    write = Write(place, new.encode(), mode, owner, before=_sum(seen))
    plain = replace(step, edit=None, wanted=wanted, actions=(write,), content=new)
    if new != old:
        return plain, seen
    return replace(plain, wanted=seen.found), replace(seen, state=State.SAME, why="already so")


def _bound(step: Step, seen: Observation) -> tuple[Action, ...]:
    """Return the actions of a step of one file, its write bound to what was seen there."""
    if not step.id.startswith("file:"):
        return step.actions
    return tuple(
        replace(act, before=_sum(seen)) if isinstance(act, Write) else act for act in step.actions
    )


def _sum(seen: Observation) -> str:
    """Return the sum of the file that was seen, ``absent``, or "" where that is not known."""
    if seen.state is State.UNKNOWN:
        return ""
    kind, _, rest = seen.found.partition(" ")
    return "absent" if kind == "absent" else rest.rpartition(" ")[2] if kind == "file" else ""


def _mode_and_owner(found: str) -> tuple[int, str]:
    words = found.split()
    return (int(words[1], 8), words[2]) if len(words) == 4 else (0o644, "root:root")


def _blocked(step: Step, why: str) -> Blocked:
    return Blocked(
        f"cannot {step.title}: {why}",
        remedy="mend the file by hand, then run the same command again",
    )
