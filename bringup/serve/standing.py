"""How a worker stands to its script, in a word, and what that means for an exit code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..core.errors import Exit
from ..core.reading import Known, Reading
from ..readiness.stages import Run, Worker
from ..readiness.worker_image import apart, drift


@dataclass(frozen=True, slots=True)
class Standing:
    """One worker: as its script has it, and how it runs."""

    worker: Worker
    run: Reading[Run]
    behind: str = ""  # that other hosts run another build of its image, in words

    @property
    def drift(self) -> tuple[str, ...]:
        """How it differs from what its script would start, in words."""
        own = drift(self.worker, self.run.value) if isinstance(self.run, Known) else ()
        return (*own, *filter(None, (self.behind,)))

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
        return "drifted" if self.drift else "runs"


def compared(standings: Iterable[Standing], builds: Sequence[str]) -> tuple[Standing, ...]:
    """Return workers with what tells them from those of other hosts; `builds`: newest first."""
    every = tuple(standings)
    runs = [(one.worker, one.run.value) for one in every if isinstance(one.run, Known)]
    behind = apart(runs, builds)
    return tuple(replace(one, behind=behind.get(one.worker.key, "")) for one in every)


def code_of(standings: tuple[Standing, ...]) -> Exit:
    """Return 0 when all run as written, 5 when some run otherwise, 3 when unknown, else 1."""
    words = {one.word for one in standings}
    if "unknown" in words:
        return Exit.UNREACHABLE
    if words <= {"runs"}:
        return Exit.DONE
    return Exit.WOULD_CHANGE if words <= {"runs", "drifted"} else Exit.FAILED
