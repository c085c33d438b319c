"""Steps: what is wanted on a host, how to see whether it is there, and what to do when it is not.

A step's `observe` text prints one line, its state, then optional detail lines (a file's content).
The state equals `wanted` when there is nothing to do. So no step needs an earlier step's effect
to be judged, and all observations travel in one trip.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from .script import Ask, Section
from .words import HostPath, Word


@dataclass(frozen=True, slots=True)
class Run:
    """Run a command. `answers` are the exit codes that count as done; `input` goes to its stdin.

    `told` is what people read in place of words that are a whole script.
    """

    words: tuple[Word, ...]
    seconds: int = 60
    answers: tuple[int, ...] = (0,)
    input: bytes = b""
    told: str = ""


@dataclass(frozen=True, slots=True)
class Write:
    """Write one file: staged beside its target, renamed over it. Folders are made as needed.

    `before` is the SHA-256 of what stood there when it was looked at, or ``absent``: where another
    content stands there by then, nothing is written. "" takes any.
    """

    path: HostPath
    content: bytes = field(repr=False)
    mode: int = 0o644
    owner: str = ""  # "user:group", "" keeps the login's own
    secret: bool = False  # content is never shown in a diff
    before: str = ""


@dataclass(frozen=True, slots=True)
class Push:
    """Unpack an archive made on the controller into a folder, swapped in whole by rename."""

    path: HostPath
    archive: str  # file on the controller
    sha256: str
    seconds: int = 600


@dataclass(frozen=True, slots=True)
class Carry:
    """Bring an image that the controller has to the host; `way` and `sends` (bytes) are estimates.

    `name` is the image's folder, `identity` its ID on the controller.
    """

    name: str
    reference: str
    identity: str
    way: str = ""
    sends: int = 0
    seconds: int = 7200


Action: TypeAlias = Run | Write | Push | Carry


@dataclass(frozen=True, slots=True)
class FileLook:
    """A look at one file; those of a host share one section (steps.together).

    The content is shown where it has another SHA-256 than `sum`, unless `shows` is False.
    """

    path: str
    sum: str = ""
    with_owner: bool = False
    shows: bool = True


@dataclass(frozen=True, slots=True)
class Step:
    """One wish. `before` is shown as the content now standing there when it differs.

    `edit` makes the new text of a file from the text that stands there ("" where it is absent); it
    raises ValueError where it cannot (see `core.edits`). A step that `follows` others has something
    to do whenever one of them has. With `keeps` the receipt keeps the observation's detail.
    """

    id: str
    title: str
    observe: str
    wanted: str
    actions: tuple[Action, ...]
    seconds: int = 10
    why: str = ""
    content: str | None = None  # text to diff against the observation's detail; None: no diff
    risk: str = "safe"  # safe · restarts a service · needs reboot · needs drain
    edit: Callable[[str], str] | None = None
    follows: tuple[str, ...] = ()
    keeps: bool = False
    look: FileLook | None = None  # what `observe` does, where it looks at one file

    @property
    def ask(self) -> Ask:
        return Ask(self.id, self.observe, self.seconds)


class State(Enum):
    """Whether a step has something to do. UNKNOWN counts as change, and is shown as such."""

    SAME = "same"
    CHANGE = "change"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Observation:
    """What stands there now: a state, the line that was found, and its detail."""

    state: State
    found: str
    detail: str = ""
    why: str = ""


KEPT = "kept: "
"""Begins the line of a thing that has to stay as it is, whatever is wanted, and says why."""


def observed(step: Step, section: Section) -> Observation:
    """Return how a host stands to a step, given the section that its `observe` gave."""
    if section.trouble or section.exit != 0:
        why = section.trouble or f"exit {section.exit}: {section.first}"
        return Observation(State.UNKNOWN, section.first, why=why)
    found, _, detail = section.text.partition("\n")
    if found.startswith(KEPT):
        return Observation(State.SAME, found.strip(), why=found.removeprefix(KEPT).strip())
    if found.strip() == step.wanted:
        return Observation(State.SAME, found.strip(), why=f"{step.wanted} already there")
    return Observation(
        State.CHANGE, found.strip(), detail, why=f"found {found.strip() or 'nothing'}"
    )


Observations: TypeAlias = Mapping[str, Observation]
