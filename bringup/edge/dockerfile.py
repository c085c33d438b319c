"""A Dockerfile from its template; what an `image.yml` says never gets out of its word."""

from __future__ import annotations

import traceback

import jinja2

from ..core.errors import TemplateError
from ..core.words import quote
from ..image.recipe import Recipe


class TemplateFault(TemplateError):
    """A template that cannot be rendered: `why`, and the line (0 where it is not known)."""

    def __init__(self, name: str, why: str, line: int) -> None:
        place = f"images/{name}/Dockerfile.j2" + (f":{line}" if line else "")
        super().__init__(
            f"cannot render {place}: {why}", remedy="a template may use: image, wheels, buildkit"
        )
        self.why, self.line = why, line


def docker_word(text: str) -> str:
    """Return a value as one quoted word of a Dockerfile; nothing in it is expanded."""
    if "\n" in text:
        raise TemplateError(f"cannot write {text!r} in a Dockerfile: it has several lines")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    return f'"{escaped}"'


def render(template: str, recipe: Recipe, *, wheels: bool, buildkit: bool) -> str:
    """Return a Dockerfile; raises TemplateError for a name that nobody gave."""
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - a Dockerfile is no page
    )
    environment.filters["q"] = quote
    environment.filters["word"] = docker_word
    try:
        return environment.from_string(template).render(
            image=recipe, wheels=wheels, buildkit=buildkit
        )
    except (jinja2.TemplateError, TemplateError, *_OWN) as error:
        line = getattr(error, "lineno", None) or _line(error)
        raise TemplateFault(recipe.name, _plainly(error), line) from error


_OWN = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError)
"""What an expression of a template may raise by itself."""


def _line(error: Exception) -> int:
    """Return the line of the template that was at work: jinja2 keeps it in the traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((f.lineno or 0 for f in reversed(frames) if f.filename == "<template>"), 0)


def _plainly(error: Exception) -> str:
    said = str(error).replace("'bringup.image.recipe.Recipe object'", "image")
    return said.replace("'bringup.image.recipe.Base object'", "image.base")
