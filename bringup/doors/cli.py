"""The installed command: every verb as a click command, for automation."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from ..core.verb import Option, Verb, defaults, options
from ..verbs import collect
from .run import offered, perform
from .spelling import placed


def parameter(option: Option, default: object) -> click.Parameter:
    """Return the click parameter of an option or argument."""
    if option.is_argument:
        if option.is_repeatable or option.default is None:
            return click.Argument(
                [option.name],
                required=option.default is None,
                nargs=-1 if option.is_repeatable else 1,
            )
        return click.Argument([option.name], required=False, default=option.default)
    if option.type is bool and default:
        both = f"{option.flag}/--no-{option.flag[2:]}"
        return click.Option([both, option.name], default=True, help=option.help.text)
    if option.type is bool:
        return click.Option(
            [option.flag, option.name], is_flag=True, default=default, help=option.help.text
        )
    return click.Option(
        [option.flag, option.name],
        type=option.type,
        default=default,
        multiple=option.is_repeatable,
        help=option.help.text,
        envvar=option.help.env or None,
        show_default=bool(option.default) and not option.is_repeatable,
    )


class VerbCommand(click.Command):
    """A command that takes its argument as an option as well, as Invoke spells it."""

    offers: tuple[Option, ...] = ()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse words, arguments that were spelled as options put in their place."""
        return super().parse_args(ctx, placed(args, self.offers))


def command(verb: Verb) -> click.Command:
    """Return the click command of a verb."""
    given = {option.name: option.default for option in options(verb)}
    parameters = [
        parameter(option, given.get(option.name, option.default)) for option in offered(verb)
    ]

    def act(**values: Any) -> None:  # noqa: ANN401 - click hands over what it parsed
        sys.exit(perform(verb, {**defaults(verb, os.environ), **values}))

    loose = any(option.help.may_be_flag for option in options(verb))
    made = VerbCommand(
        verb.name, callback=act, params=parameters, help=verb.description,
        short_help=verb.summary, context_settings={"ignore_unknown_options": loose},
    )  # fmt: skip
    made.offers = offered(verb)
    return made


def group() -> click.Group:
    """Return the whole command line."""
    from .. import __version__

    commands: dict[str, click.Command] = {verb.name: command(verb) for verb in collect()}
    top = click.Group(
        "bringup", commands=commands, help="Bring a bare GPU host to a serving worker."
    )
    version = click.version_option(__version__, prog_name="bringup")
    decorated: click.Group = version(top)
    return decorated


def main() -> None:
    """Run the command line."""
    group()(prog_name="bringup")
