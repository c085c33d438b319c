"""A verb: one typed function whose signature and docstring are the only declaration.

Both doors derive their options from it: keyword-only parameters become options, positional ones
arguments. Types in use: bool (a flag), str, int, float, and tuple[str, ...] (repeatable).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

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
        return "known_hosts" in inspect.signature(self.act).parameters

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return (inspect.getdoc(self.act) or "").splitlines()[0]

    @property
    def description(self) -> str:
        return inspect.getdoc(self.act) or ""


def options(verb: Verb) -> tuple[Option, ...]:
    """Return the options of a verb, in the order of its signature, the screen left out."""
    hints = get_type_hints(verb.act, include_extras=True)
    parameters = list(inspect.signature(verb.act).parameters.values())[1:]
    return tuple(_option(parameter, hints[parameter.name]) for parameter in parameters)


def _option(parameter: inspect.Parameter, hint: object) -> Option:
    kind, help_ = get_args(hint)[:2] if get_origin(hint) is Annotated else (hint, Help(""))
    repeatable = get_origin(kind) is tuple
    empty = parameter.default is inspect.Parameter.empty
    return Option(
        name=parameter.name,
        type=str if repeatable else kind,
        default=None if empty else kind(parameter.default) if kind is float else parameter.default,
        help=help_,
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
