"""The catalogue of known failures, read from its YAML files and checked as it is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from ..core.errors import UsageError
from ..readiness.failures import Failure
from ..readiness.signs import SIGNS

Text = Annotated[str, Field(min_length=1)]


def _pattern(text: str) -> str:
    try:
        re.compile(f"(?:{text})")  # all rows are joined to one pattern: (?i:…) may stand in it
    except re.error as error:
        raise ValueError(f"no regular expression: {error}") from error
    return text


def _sign(word: str) -> str:
    if word.partition("=")[0] not in SIGNS:
        raise ValueError(f"no sign {word!r}; there is {', '.join(sorted(SIGNS))}")
    return word


Pattern = Annotated[str, AfterValidator(_pattern)]


class Entry(BaseModel):
    """One row as it is written. What each key means stands in docs/serve.md."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    title: Text
    cause: Text
    fix: Text
    sources: Annotated[tuple[Text, ...], Field(min_length=1)]
    says: tuple[Pattern, ...] = ()
    also: tuple[Pattern, ...] = ()
    signs: tuple[Annotated[str, AfterValidator(_sign)], ...] = ()
    command: str = ""
    certain: bool = False
    weight: Annotated[int, Field(ge=0, le=100)] = 50
    engines: tuple[str, ...] = ()
    versions: dict[str, tuple[str, str]] = Field(default_factory=dict)
    given: dict[str, str] = Field(default_factory=dict)
    checks: tuple[str, ...] = ()

    def failure(self, family: str) -> Failure:
        """Return it as a value; patterns are compiled once."""
        patterns = {
            name: tuple(re.compile(text) for text in getattr(self, name))
            for name in ("says", "also")
        }
        kept = {name: getattr(self, name) for name in type(self).model_fields}
        return Failure(**{**kept, **patterns, "family": family})


@cache
def failures() -> tuple[Failure, ...]:
    """Return every row of the shipped catalogue. Raises UsageError for a row that is none."""
    folder = Path(str(files("bringup.readiness") / "failures"))
    return tuple(row for path in sorted(folder.glob("*.yml")) for row in read_rows(path))


def read_rows(path: Path) -> Iterator[Failure]:
    """Yield the rows of one file; its name is their family."""
    seen: set[str] = set()
    for row in yaml.safe_load(path.read_text()) or ():
        entry = _entry(path, row)
        if entry.id in seen:
            raise UsageError(f"cannot read {path}: {entry.id} stands there twice")
        if not entry.says and not entry.signs:
            raise UsageError(f"cannot read {path}: {entry.id} says nothing that would show it")
        seen.add(entry.id)
        yield entry.failure(path.stem)


def _entry(path: Path, row: Any) -> Entry:  # noqa: ANN401 - whatever YAML holds
    try:
        return Entry.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        name = row.get("id", "a row") if isinstance(row, dict) else "a row"
        raise UsageError(f"cannot read {path}: {name}: {where}: {first['msg']}") from error
