"""A verb: one typed function whose signature and docstring are the only declaration.

Both doors derive their options from it: keyword-only parameters become options, positional ones
arguments. Types in use: bool (a flag), str, int, float, and tuple[str, ...] (repeatable). A
parameter whose type is a dataclass is a group of options: its fields, keyword-only, are options of
the verb as well, and may be groups again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from functools import cache
from typing import Annotated, Any, TypeGuard, get_args, get_origin, get_type_hints

from .errors import Exit


@dataclass(frozen=True, slots=True)
class Help:
    """What an option is for; `env` names the variable that gives its default.

    `may_be_flag`: an argument that may be the name of somebody else's flag, as ``--tp-size``.
    """

    text: str
    env: str = ""
    may_be_flag: bool = False


@dataclass(frozen=True, slots=True)
class Without:
    """Marks a parameter whose verb offers a group without some fields; these keep their defaults.

    As in ``Annotated[Selection, Without(("limit", "exclude"))]``.
    """

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Option:
    """One option or argument of a verb, as both doors need it."""

    name: str
    type: type
    default: Any  # the parameter's own default; its type is `type`
    help: Help
    is_argument: bool = False
    is_repeatable: bool = False

    @property
    def is_needed(self) -> bool:
        """Whether a command line has to give it."""
        return self.default is None and not self.is_repeatable

    @property
    def called(self) -> str:
        """Its name as people read it where it is missing."""
        return self.name.upper() if self.is_argument else self.flag

    @property
    def flag(self) -> str:
        return "--" + self.name.strip("_").replace("_", "-")


@dataclass(frozen=True, slots=True)
class Verb:
    """A public verb: its dotted name and its function, which gets a screen first."""

    name: str
    act: Callable[..., Exit]
    reads_only: bool = False  # may run under `invoke --dry`

    @property
    def contacts_hosts(self) -> bool:
        """Whether it may open connections: then it lets people say which host keys to trust."""
        return any(option.name == "known_hosts" for option in options(self))

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return (inspect.getdoc(self.act) or "").splitlines()[0]

    @property
    def description(self) -> str:
        return inspect.getdoc(self.act) or ""


def options(verb: Verb) -> tuple[Option, ...]:
    """Return the options of a verb in the order of its signature, groups unfolded in their place.

    The screen, which comes first, is none.
    """
    return tuple(_unfolded(verb.act, without=_screen(verb)))


def arguments(verb: Verb, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a verb's function is called with: a value an option, gathered into its groups."""
    return _gathered(verb.act, values, without=_screen(verb))


def _screen(verb: Verb) -> tuple[str, ...]:
    return tuple(inspect.signature(verb.act).parameters)[:1]


def _unfolded(act: Callable[..., object], *, without: tuple[str, ...]) -> Iterator[Option]:
    for parameter, kind, marks in _parameters(act, without):
        if _is_group(kind):
            yield from _unfolded(kind, without=_left_out(marks))
        else:
            yield _option(parameter, kind, marks)


def _gathered(
    act: Callable[..., object], values: Mapping[str, Any], *, without: tuple[str, ...]
) -> dict[str, Any]:
    called: dict[str, Any] = {}
    for parameter, kind, marks in _parameters(act, without):
        name = parameter.name
        if _is_group(kind):
            called[name] = kind(**_gathered(kind, values, without=_left_out(marks)))
        else:
            called[name] = values[name]
    return called


def _parameters(
    act: Callable[..., object], without: tuple[str, ...]
) -> Iterator[tuple[inspect.Parameter, Any, tuple[object, ...]]]:
    """Yield each parameter of a verb's function, or field of a group: its type, and its marks."""
    hints = _hints(act)
    for parameter in inspect.signature(act).parameters.values():
        if parameter.name not in without:
            hint = hints[parameter.name]
            kind, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
            yield parameter, kind, tuple(marks)


def _is_group(kind: object) -> TypeGuard[Callable[..., object]]:
    return isinstance(kind, type) and is_dataclass(kind)


@cache
def _hints(act: Callable[..., object]) -> dict[str, Any]:
    return get_type_hints(act, include_extras=True)


def _left_out(marks: tuple[object, ...]) -> tuple[str, ...]:
    return tuple(name for mark in marks if isinstance(mark, Without) for name in mark.names)


def _option(parameter: inspect.Parameter, kind: Any, marks: tuple[object, ...]) -> Option:  # noqa: ANN401 - a type, or tuple[str, ...]
    repeatable = get_origin(kind) is tuple
    empty = parameter.default is inspect.Parameter.empty
    return Option(
        name=parameter.name,
        type=str if repeatable else kind,
        default=None if empty else kind(parameter.default) if kind is float else parameter.default,
        help=next((mark for mark in marks if isinstance(mark, Help)), Help("")),
        is_argument=parameter.kind is not inspect.Parameter.KEYWORD_ONLY,
        is_repeatable=repeatable,
    )


def defaults(verb: Verb, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the default of every option, taken from the environment where its help names one."""
    return {
        option.name: environment.get(option.help.env, option.default)
        if option.help.env
        else option.default
        for option in options(verb)
    }
