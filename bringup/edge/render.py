"""Render script templates. Every value passes a filter that quotes it; none reaches sh raw.

Filters: `q` one word · `argv` words, an option and its value a line · `env` checked names with
quoted values · `comment` text that cannot leave its comment line · `unit` a word of a systemd unit.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import jinja2

from ..core.errors import TemplateError
from ..core.words import Secret

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\x85\u2028\u2029]+")


def q(value: object) -> str:
    """Quote one word. Raises TemplateError for a secret and for what is no single word."""
    if isinstance(value, jinja2.Undefined):
        str(value)  # raises, naming the value that nobody gave
    if isinstance(value, Secret):
        raise TemplateError("cannot put a secret into a script: give it through the secrets file")
    if not isinstance(value, str | int | float) or "\0" in str(value):
        raise TemplateError(f"cannot quote {value!r} as one word")
    return shlex.quote(str(value))


def argv(words: Iterable[object], names: Mapping[str, str] | None = None) -> str:
    """Lay out words for a continued command, an option with its value on one line.

    `names` maps an option to the shell variable that holds its value, which is shown instead.
    """
    lines: list[str] = []
    owner = ""
    for word in words:
        if isinstance(word, str) and re.match(r"--?[A-Za-z]", word):
            lines.append(q(word))
            owner = word
        elif lines and owner:
            name = (names or {}).get(owner)
            lines[-1] += f' "${name}"' if name else f" {q(word)}"
            owner = ""
        else:
            lines.append(q(word))
    return " \\\n".join(f"    {line}" for line in lines)


def env(values: Mapping[str, object]) -> str:
    """Lay out exports, a variable a line. Raises TemplateError for a name that is none."""
    for name in values:
        if not _NAME.fullmatch(name):
            raise TemplateError(f"cannot export {name!r}: not a variable name")
    return "\n".join(f"export {name}={q(value)}" for name, value in values.items())


def comment(value: object) -> str:
    """Return text that stays on its comment line."""
    return _CONTROL.sub(" ", str(value)).strip()


def unit(value: object) -> str:
    """Return one word of a systemd unit: ``%`` doubled, control characters gone, quoted if needed.

    Raises TemplateError for a secret.
    """
    if isinstance(value, Secret):
        raise TemplateError("cannot put a secret into a unit: give it through the secrets file")
    text = _CONTROL.sub(" ", str(value)).strip().replace("\\", "\\\\").replace("%", "%%")
    return (
        text if re.fullmatch(r"[\w@%+=:,./ ()-]+", text) else '"' + text.replace('"', '\\"') + '"'
    )


FILTERS: Mapping[str, Callable[..., str]] = {
    "q": q,
    "argv": argv,
    "env": env,
    "comment": comment,
    "unit": unit,
}


@dataclass(frozen=True, slots=True)
class Renderer:
    """Renders the templates of one folder; made once, used for all hosts."""

    folder: Path
    environment: jinja2.Environment = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        made = jinja2.Environment(  # noqa: S701 - shell text: our filters quote, HTML rules do not
            loader=jinja2.FileSystemLoader(self.folder),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        made.filters.update(FILTERS)
        object.__setattr__(self, "environment", made)

    def text(self, template: str, values: Mapping[str, object]) -> str:
        """Return the rendered text.

        Raises TemplateError naming the template, its line and the value that is missing.
        """
        try:
            return self.environment.get_template(template).render(values)
        except jinja2.TemplateNotFound as error:
            known = ", ".join(sorted(self.environment.list_templates()))
            raise TemplateError(
                f"cannot find template {error.name!r} in {self.folder}",
                remedy=f"it has: {known}"
                if known
                else "run it in the folder that holds templates/",
            ) from error
        except jinja2.TemplateSyntaxError as error:
            where = f"{error.name or template}:{error.lineno}"
            raise TemplateError(f"cannot read template {where}: {error.message}") from error
        except (jinja2.UndefinedError, TemplateError) as error:
            where = _place(error, self.folder) or template
            raise TemplateError(f"cannot render {where}: {error.message}") from error


def _place(error: BaseException, folder: Path) -> str:
    """Return file:line of the innermost template frame; jinja2 puts them into tracebacks."""
    place, trace = "", error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if file.is_relative_to(folder):
            place = f"{file.relative_to(folder)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
