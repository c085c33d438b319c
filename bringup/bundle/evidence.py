"""All that a diagnosis of an empty model list looks at, and what follows from it at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.reading import Absent, Known, Reading, Unknown, value_of
from ..readiness.cards import Announced, CardFile, ModelCard, Where
from .frontend_log import Tried, last_attempt
from .match import Held, Mismatch, Sums, mismatch
from .releases import Release

ALL_NAMESPACES = ("", "dynamo")
"""A frontend with one of these as its namespace looks at the models of all namespaces."""


@dataclass(frozen=True, slots=True)
class Ready:
    """What ``/v1/models/NAME/ready`` says: the body counts, its HTTP status differs by release."""

    ready: bool
    present: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


NOT_ASKED = Unknown("not looked at")
"""The reading of whatever nobody looked at."""

NO_OVERLAY = Absent("no --model-path")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was found. Folders are as the frontend's own process sees them.

    `ready` is absent where the frontend does not know the name (404). `overlay` is the folder
    of the frontend's ``--model-path``, absent where it was started without.
    """

    name: str
    announced: Reading[Announced] = NOT_ASKED
    listed: Reading[tuple[str, ...]] = NOT_ASKED
    ready: Reading[Ready] = NOT_ASKED
    log: Reading[str] = NOT_ASKED
    folders: Mapping[str, Reading[Held]] = field(default_factory=dict)
    overlay: Reading[Held] = NO_OVERLAY
    release: Reading[Release] = NOT_ASKED
    namespace: Reading[str] = NOT_ASKED
    processor: str = "dynamo"
    discovery: str = ""  # where the frontend looks for workers, as its process shows

    @property
    def all_cards(self) -> tuple[ModelCard, ...]:
        found = value_of(self.announced)
        return found.cards if found else ()

    @property
    def cards(self) -> tuple[ModelCard, ...]:
        """Cards of the model in question, also under its aliases."""
        return tuple(c for c in self.all_cards if self.name in (c.name, *c.aliases))

    @property
    def is_listed(self) -> bool:
        return self.name in (value_of(self.listed) or ())

    @property
    def is_unlisted(self) -> bool:
        """Whether the list surely lacks the model."""
        return isinstance(self.listed, Known) and not self.is_listed

    @property
    def tried(self) -> Tried | None:
        """What became of this model in the frontend, by its log."""
        log = value_of(self.log)
        return last_attempt(log, self.name, workers=len(self.cards)) if log else None

    def found(self, file: CardFile) -> Reading[Sums]:
        """Return what the frontend would read for a file of a card: its path, else the overlay.

        A file at the worker's path is taken whatever is in it; only a missing one leads on.
        """
        folder = self.folders.get(file.path.rpartition("/")[0], Unknown("nobody looked there"))
        match folder:
            case Unknown():
                return folder
            case Known(names) if file.name in names:
                return Known(names[file.name])
        match self.overlay:
            case Unknown():
                return self.overlay
            case Known(names) if file.name in names:
                return Known(names[file.name])
        return Absent(f"no {file.name}")

    def mismatches(self) -> tuple[Mismatch, ...]:
        """Return the files that the frontend would not get as announced; unseen ones left out."""
        pairs = ((card, file) for card in self.cards for file in card.files)
        seen = (
            (card, file, self.found(file)) for card, file in pairs if file.where is Where.FOLDER
        )
        faults = (
            mismatch(card, file, value_of(sums))
            for card, file, sums in seen
            if not isinstance(sums, Unknown)
        )
        return tuple(fault for fault in faults if fault is not None)

    def unseen(self) -> tuple[str, ...]:
        """Return why folders of the cards could not be looked at, a line each."""
        folders = {
            file.path.rpartition("/")[0]
            for card in self.cards
            for file in card.files
            if file.where is Where.FOLDER
        }
        readings = ((name, self.folders.get(name, Unknown("not looked at"))) for name in folders)
        return tuple(
            sorted(f"{name}: {one.why}" for name, one in readings if isinstance(one, Unknown))
        )
