"""How one host came out of a run."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import Exit, ToolError
from .fixes import Fix
from .plan import Plan
from .receipt import Receipt


@dataclass(frozen=True, slots=True)
class Ended:
    """How one host came out."""

    host: str
    plan: Plan | None = None
    receipt: Receipt | None = None
    record: str = ""
    error: ToolError | None = None
    fixes: tuple[Fix, ...] = ()  # what was fixed, would be, or is left to a person
    rounds: tuple[Ended, ...] = ()  # what fixing did, before facts were read again

    @property
    def code(self) -> Exit:
        """The exit code that this host alone would give in check mode or after applying."""
        if self.error is not None:
            return self.error.code
        if self.plan is not None and self.plan.blocks:
            return Exit.BLOCKED
        if self.receipt is None and self.plan is not None and self.plan.changes:
            return Exit.WOULD_CHANGE
        return Exit.DONE
