"""A Dockerfile from its template; what an `image.yml` says never gets out of its word."""

from __future__ import annotations

import jinja2

from ..core.errors import TemplateError
from ..core.words import quote
from ..image.recipe import Recipe


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
    except jinja2.TemplateError as error:
        raise TemplateError(
            f"cannot render images/{recipe.name}/Dockerfile.j2: {error}",
            remedy="a template may use: image, wheels, buildkit",
        ) from error
