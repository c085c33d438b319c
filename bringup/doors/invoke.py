"""The newcomer's door: every verb as an Invoke task, from the same declaration as the command."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from invoke.collection import Collection
from invoke.context import Context
from invoke.exceptions import Exit as InvokeExit
from invoke.main import program
from invoke.tasks import Task

from ..core.errors import Exit
from ..core.verb import Option, Verb, defaults
from ..verbs import collect
from .run import offered, perform
from .spelling import fault, spelled


def collection(verbs: Iterable[Verb] | None = None) -> Collection:
    """Return all verbs as tasks; a dotted name is a task in a collection of its own."""
    verbs = tuple(verbs or collect())
    rooms = {verb.name.partition(".")[0] for verb in verbs if "." in verb.name}
    top, nested = Collection(), {room: Collection(room) for room in sorted(rooms)}
    for verb in verbs:
        room, _, rest = verb.name.partition(".")
        if room not in rooms:
            top.add_task(task(verb), name=verb.name)
        else:
            nested[room].add_task(task(verb), name=rest or room, default=not rest)
    for inner in nested.values():
        top.add_collection(inner)
    return top


def heed_arguments(verbs: Iterable[Verb]) -> None:
    """Let the running `invoke` take arguments of verbs as the installed command does."""
    core = getattr(program, "core", None)
    if core is None:
        return
    if "--help" in core.unparsed[1:]:  # a task that lacks its argument would take it for that
        core[0].args.help.value, core.unparsed[:] = core.unparsed[0], []
    else:
        core.unparsed[:] = spelled(core.unparsed, verbs, rest=core.remainder)
        name, text = fault(core.unparsed, verbs)
        if text:
            _refuse(text, name)


def task(verb: Verb) -> Task[Callable[..., None]]:
    """Return the Invoke task of a verb.

    An argument is optional to Invoke, which would exit 1 where it is missing; `_missing` exits 2.
    Short flags are off, since Invoke would give ``-h`` to ``--host``.
    """
    every = offered(verb)
    given = defaults(verb, os.environ)

    def body(context: Context, **values: Any) -> None:  # noqa: ANN401 - Invoke parsed them
        _check_dry(context, verb, values)
        _missing(verb, every, values)
        values = {**values, **_numbers(verb, every, values)}
        code = perform(verb, values)
        if code:
            raise InvokeExit(code=code)

    body.__doc__ = verb.description
    body.__signature__ = _signature(every, given)  # type: ignore[attr-defined]
    return Task(
        body,
        name=verb.name.rpartition(".")[2],
        positional=[option.name for option in every if option.is_argument],
        iterable=[option.name for option in every if option.is_repeatable],
        help={option.name: option.help.text for option in every},
        auto_shortflags=False,
    )


def _signature(every: Iterable[Option], given: dict[str, Any]) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter("context", kind)]
    for option in every:
        default = [] if option.is_repeatable else given.get(option.name, option.default)
        default = str(default) if option.type in NUMBERS else default
        parameters.append(inspect.Parameter(option.name, kind, default=default))
    return inspect.Signature(parameters)


NUMBERS = {int: "a whole number", float: "a number"}
"""Types that Invoke would read by itself, and end in a traceback where a word is none."""


def _numbers(verb: Verb, every: Iterable[Option], values: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers among values; exits 2 where a word is none."""
    found = {}
    for option in (one for one in every if one.type in NUMBERS and not one.is_repeatable):
        text = str(values[option.name])
        try:
            found[option.name] = option.type(text)
        except ValueError:
            want = f"{option.flag} wants {NUMBERS[option.type]}, not {text!r}"
            _refuse(f"cannot run {verb.name}: {want}", verb.name)
    return found


def _refuse(text: str, name: str) -> NoReturn:
    where = f"invoke --help {name}" if name else "invoke --list"
    raise InvokeExit(f"{text}\n  do      {where}", code=int(Exit.USAGE))


def _missing(verb: Verb, every: Iterable[Option], values: dict[str, Any]) -> None:
    for option in every:
        if option.is_needed and not values.get(option.name):
            _refuse(f"cannot run {verb.name}: {option.called} is missing", verb.name)


def _check_dry(context: Context, verb: Verb, values: dict[str, Any]) -> None:
    """`invoke --dry` is our check mode, so that it can never be a real run by mistake."""
    if not context.config.run.dry:
        return
    if "check" in values:
        values["check"] = True
    elif not verb.reads_only:
        raise InvokeExit(f"cannot run {verb.name} with --dry: it has no check mode", code=2)
