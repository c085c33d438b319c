"""How one host came out of a run."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import Exit, ToolError
from .fixes import Fix
from .plan import Plan
from .receipt import Receipt
from .rules import Finding


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
    def lifted(self) -> tuple[Finding, ...]:
        """Return the fallbacks that fixing made needless, as they were found before it."""
        first = self.rounds[0].plan if self.rounds else None
        if first is None or self.plan is None:
            return ()
        needed = {finding.id for finding in self.plan.findings if finding.decide}
        return tuple(f for f in first.findings if f.decide and f.id not in needed)

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
