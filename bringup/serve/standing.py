"""How a worker stands to its script, in a word, and what that means for an exit code."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.errors import Exit
from ..core.reading import Known, Reading
from ..readiness.stages import Run, Worker


@dataclass(frozen=True, slots=True)
class Standing:
    """One worker: as its script has it, and how it runs."""

    worker: Worker
    run: Reading[Run]

    @property
    def word(self) -> str:
        """How it stands, in a word or two."""
        if not isinstance(self.run, Known):
            return "unknown"
        run = self.run.value
        if run.status != "running":
            code = "" if run.exit is None else f" ({run.exit})"
            return "not there" if run.status == "gone" else f"{run.status}{code}"
        if not run.config and self.worker.contained:
            return "foreign"
        return "runs" if run.config in ("", self.worker.config) else "drifted"


def code_of(standings: tuple[Standing, ...]) -> Exit:
    """Return 0 when all run as written, 5 when some run otherwise, 3 when unknown, else 1."""
    words = {one.word for one in standings}
    if "unknown" in words:
        return Exit.UNREACHABLE
    if words <= {"runs"}:
        return Exit.DONE
    return Exit.WOULD_CHANGE if words <= {"runs", "drifted"} else Exit.FAILED
