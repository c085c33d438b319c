"""Step kind: a state that one line of a shell tells, and a command that brings it about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..core.steps import Run, Step
from ..core.words import Word


def command_step(
    name: str,
    title: str,
    observe: str,
    wanted: str,
    words: Iterable[Word],
    *,
    seconds: int = 60,
    why: str = "",
    risk: str = "safe",
    follows: Iterable[str] = (),
) -> Step:
    """Return the step; `observe` is sh text that prints the state, `words` the command."""
    every = tuple(words)
    act = Run(every, seconds=seconds, told=title if every[:2] == ("sh", "-c") else "")
    return Step(
        f"command:{name}", title, observe, wanted, (act,), why=why, risk=risk,
        follows=tuple(follows),
    )  # fmt: skip


def merged(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Return steps with each id once, in order; edits of one file are made one after another.

    A service restarts once, after the last of the steps that call for it.
    """
    found: dict[str, Step] = {}
    for step in steps:
        old = found.pop(step.id, None) if step.id.startswith("restart:") else found.get(step.id)
        found[step.id] = step if old is None else _both(old, step)
    return tuple(found.values())


def _both(first: Step, second: Step) -> Step:
    follows = tuple(dict.fromkeys((*first.follows, *second.follows)))
    one, other = first.edit, second.edit
    if first.id.startswith("restart:") and first.observe != second.observe:
        return replace(first, observe=_either(first, second), follows=follows)
    if one is None or other is None:
        return replace(first, follows=follows)
    titles = dict.fromkeys((first.title, second.title))
    return replace(
        first, title="; ".join(titles), edit=lambda text: other(one(text)), follows=follows
    )


def _either(first: Step, second: Step) -> str:
    """Return the look of a step that has something to do where either of two has."""
    show = "{ printf '%s\\n' \"$seen\"; exit 0; }"
    return f'seen=$(\n{first.observe}\n)\n[ "$seen" = {first.wanted} ] || {show}\n{second.observe}'
