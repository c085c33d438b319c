"""A host's raw answer as one text file that people can share, and the way back to sections.

The file opens with lines that start with ``#``: schema, tool version, what host it was. The answer
follows as it came, identifiers masked and its random mark replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .errors import UsageError
from .facts import Facts, Probe, read
from .masking import mask
from .script import Answer, split

SCHEMA = "bringup.capture/1"
MARK = "capture"
"""What stands in a capture for the random mark of a trip."""

_HEAD = re.compile(r"# ([a-z]+): ?(.*)")


@dataclass(frozen=True, slots=True)
class Capture:
    """One host's answer. `kind` names the kind of host, `about` says in words what it is."""

    answer: Answer
    tool: str = ""
    kind: str = ""
    about: str = ""


def written(
    raw: str,
    *,
    nonce: str,
    tool: str,
    kind: str = "",
    about: str = "",
    hosts: Iterable[str] = (),
    users: Iterable[str] = (),
) -> str:
    """Return the text of a capture. `hosts` and `users` are names to mask besides those found."""
    names, logins = tuple(hosts), tuple(users)
    body = raw.replace(f"@@{nonce} ", f"@@{MARK} ")
    start = body.find(f"@@{MARK} begin ")
    head = [f"# schema: {SCHEMA}", f"# tool: {tool}", f"# kind: {kind}", f"# about: {about}"]
    words = mask("\n".join(head), hosts=names, users=logins)
    return f"{words}\n{mask(body[max(start, 0) :], hosts=names, users=logins)}"


def read_capture(text: str, *, name: str = "capture") -> Capture:
    """Return the capture in a text; a raw answer as the store keeps it will do as well.

    Raises UsageError for a schema that this version does not know, or a text that is no answer.
    """
    head = {m[1]: m[2] for line in _head(text) if (m := _HEAD.fullmatch(line))}
    schema = head.get("schema", "")
    if schema not in ("", SCHEMA):
        raise UsageError(
            f"cannot read {name}: its schema is {schema}, this version knows {SCHEMA}",
            remedy="use the version of bringup that wrote it, or capture the host again",
        )
    mark = re.search(r"(?m)^@@(\S+) begin \S", text)
    if mark is None:
        raise UsageError(
            f"cannot read {name}: it holds no answer of a host",
            remedy="make one with: bringup probe.capture --host HOST",
        )
    answer = split(text, nonce=mark[1])
    return Capture(answer, head.get("tool", ""), head.get("kind", ""), head.get("about", ""))


def _head(text: str) -> list[str]:
    lines = text.splitlines()
    end = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return lines[:end]


def replayed(capture: Capture, probes: Iterable[Probe[Any]]) -> Facts:
    """Return the facts in a capture; what was not asked then stays "not asked"."""
    asked = [probe for probe in probes if probe.name in capture.answer.sections]
    return read(asked, capture.answer)
