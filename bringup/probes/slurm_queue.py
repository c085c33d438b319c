"""The jobs that Slurm runs on a node now: whose, and how long they may still take."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.reading import Known, Reading, Unknown
from ..core.script import Ask, Section
from ..core.words import quote
from .text import answered, first, told

NAME = "slurm_queue"

_SCRIPT = r"""
limit=
command -v timeout >/dev/null && limit='timeout -k 1 10'
t=$($limit squeue -h -w {node} -o 'job|%A|%u|%T|%L|%j' 2>&1); rc=$?
printf 'queue\t%s\n' "$rc"
printf '%s\n' "$t" | sed 's/^/line	/'
printf 'end\tof queue\n'
"""


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """One job on a node. `left_s` is what its time limit leaves it; None: none was told."""

    id: str
    user: str
    state: str
    left_s: int | None
    name: str

    def __str__(self) -> str:
        left = "" if self.left_s is None else f", at most {_words(self.left_s)} more"
        return f"job {self.id} of {self.user} ({self.name}{left})"


def queue_ask(node: str) -> Ask:
    """Return the question for the jobs on a node."""
    return Ask(NAME, _SCRIPT.format(node=quote(node)), 15)


def parse_queue(section: Section) -> Reading[tuple[QueuedJob, ...]]:
    """Return the jobs; no line is a good answer, a controller that is silent is not."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return Unknown(getattr(answer, "why", "absent"), section.first)
    found = told(answer.value)
    lines = found.get("line", ())
    if first(found, "end") != "of queue":
        return Unknown("the list of jobs was cut off", section.first)
    if first(found, "queue") != "0":
        return Unknown(lines[0] if lines and lines[0] else "squeue told nothing", section.first)
    rows = (line.split("|", 5) for line in lines if line.startswith("job|"))
    jobs = tuple(
        QueuedJob(row[1], row[2], row[3], seconds_of(row[4]), row[5])
        for row in rows
        if len(row) == 6
    )
    return Known(jobs, "; ".join(map(str, jobs)) or "no jobs")


def seconds_of(text: str) -> int | None:
    """Return a time of Slurm (2-03:04:05, 04:05, 0:07) in seconds; None for UNLIMITED and such."""
    match = re.fullmatch(r"(?:(\d{1,4})-)?(?:(\d{1,2}):)?(\d{1,2}):(\d{2})", text.strip())
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _words(seconds: int) -> str:
    if seconds < 5400:
        return f"{-(-seconds // 60)} min"
    return f"{seconds / 3600:.0f} h" if seconds < 172800 else f"{seconds / 86400:.0f} days"
