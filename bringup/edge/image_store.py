"""Records and logs of image builds, as files below the state folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pydantic

from ..core.errors import UsageError
from ..image.record import SCHEMA, Record
from .store import by_moment, fresh, load_document, save_document


@dataclass(frozen=True, slots=True)
class ImageStore:
    """`folder` is the state folder (`.bringup` by default)."""

    folder: Path

    def home(self, name: str) -> Path:
        return self.folder / "images" / name

    def log(self, name: str, moment: str) -> Path:
        """Return the path for the log of a build that starts now; its folder is made."""
        path = self.home(name) / "logs" / f"{_stamp(moment)}.log"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"cannot keep a log in {path.parent}: {error.strerror}",
                remedy="make that folder writable, or keep state elsewhere: --state FOLDER",
            ) from error
        return path

    def save(self, record: Record) -> Path:
        """Keep a record under its moment; records are never overwritten."""
        path = fresh(self.home(record.name), record.at)
        save_document(path, record.document)
        return path

    def records(self, name: str) -> tuple[Record, ...]:
        """Return the records of an image, newest first."""
        return tuple(_load(path) for path in reversed(by_moment(self.home(name).glob("*.json"))))


def _load(path: Path) -> Record:
    document = load_document(path, SCHEMA)
    del document["schema"]
    try:
        return pydantic.TypeAdapter(Record).validate_python(document)
    except pydantic.ValidationError as error:
        raise UsageError(
            f"cannot read {path}: {error}", remedy=f"move {path} away; the next build writes anew"
        ) from error


def _stamp(moment: str) -> str:
    return moment.replace("-", "").replace(":", "")
