"""Apply a plan: lock, act step by step, look again after each change, write the receipt."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from ..core import receipt as receipts
from ..core.errors import CommandFailed, ToolError, Unreachable, VerifyFailed
from ..core.event import Event
from ..core.host import Host
from ..core.plan import Plan, Planned
from ..core.receipt import Outcome, Receipt
from ..core.remote import Reader, Remote
from ..core.script import Ask, compose, seconds_for, split
from ..core.steps import Carry, Observation, Push, Run, State, Step, Write, observed
from ..core.words import HostPath, shown
from ..edge.store import save_document
from ..steps import together

if TYPE_CHECKING:
    from .types import Tools

HOST_LOG = HostPath("/var/log/bringup.log")


def observe(
    tools: Tools, reader: Reader, host: Host, steps: Iterable[Step]
) -> dict[str, Observation]:
    """Return how a host stands to all steps, in one trip: all files by one look.

    A second trip asks, each by itself, for what the shared look could not tell.
    """
    look = _Look.at(tools, host, steps)
    said = reader.read(look.script, seconds=look.seconds).stdout if look.asks else ""
    return look.seen(tools, reader, host, said)


@dataclass(frozen=True, slots=True)
class _Look:
    """A look at steps: files share a section, others have their own."""

    wishes: dict[str, Step]
    shared: tuple[Step, ...]
    others: tuple[Step, ...]
    asks: tuple[Ask, ...]
    script: str
    nonce: str

    @classmethod
    def at(cls, tools: Tools, host: Host, steps: Iterable[Step]) -> _Look:
        wishes, nonce = {step.id: step for step in steps}, tools.nonce()
        shared, others = together.apart(wishes.values())
        asks = (*together.asks(shared), *(step.ask for step in others))
        return cls(wishes, shared, others, asks, compose(asks, nonce=nonce, root=host.root), nonce)

    @property
    def seconds(self) -> float:
        return seconds_for(self.asks)

    def seen(self, tools: Tools, reader: Reader, host: Host, said: str) -> dict[str, Observation]:
        """Return what an answer tells of each step; ask again for what it could not tell."""
        answer = split(said, nonce=self.nonce)
        found = together.sections(self.shared, answer)
        found |= {step.id: answer[step.id] for step in self.others}
        left = [step.ask for step in self.shared if step.id not in found]
        if left:
            nonce = tools.nonce()
            script = compose(left, nonce=nonce, root=host.root)
            again = split(reader.read(script, seconds=seconds_for(left)).stdout, nonce=nonce)
            found |= {ask.name: again[ask.name] for ask in left}
        return {name: observed(wish, found[name]) for name, wish in self.wishes.items()}


def apply(tools: Tools, host: Host, plan: Plan) -> tuple[Receipt, str, ToolError | None]:
    """Apply a plan under the host's lock; return the receipt, where it lies, and what failed.

    A failed step ends the host's run: later steps are marked as not reached. Raises LockHeld,
    before anything is changed, where somebody else is at work on the host.
    """
    remote = tools.fleet.remote(host.name)
    receipt = receipts.blank(plan, operator=tools.operator, began=tools.moment())
    error: ToolError | None = None
    with remote.lock(f"{tools.operator} since {receipt.began}: applying plan {receipt.plan[:19]}"):
        record = tools.store.receipt_file(host.name, stamp=receipt.began)
        for batch in batches(plan.changes):
            receipt = _begun(record, batch, receipt)
            receipt, error = _batch(tools, remote, host, batch, receipt)
            if error and len(batch) > 1 and not isinstance(error, Unreachable):
                receipt, error = _one_by_one(tools, remote, host, batch, receipt)
            if error:
                break
        receipt = replace(receipt, ended=tools.moment())
        save_document(record, receipts.document(receipt))
        unlogged = None if isinstance(error, Unreachable) else _log(remote, host, receipt)
    return receipt, str(record), error or unlogged


def _begun(record: Path, batch: tuple[Planned, ...], receipt: Receipt) -> Receipt:
    """Keep what is about to be done before it is: undo must know it, however the run ends."""
    ids = {planned.step.id for planned in batch}
    begun = receipts.mark(receipt, ids, Outcome.BEGUN, seconds=0.0)
    save_document(record, receipts.document(begun))
    return begun


def batches(changes: Iterable[Planned]) -> Iterator[tuple[Planned, ...]]:
    """Yield steps that travel together: neighbours that only write files, else one by one."""
    for only_writes, group in groupby(changes, key=_only_writes):
        if only_writes:
            yield tuple(group)
        else:
            yield from ((planned,) for planned in group)


def _only_writes(planned: Planned) -> bool:
    return all(isinstance(action, Write) for action in planned.step.actions)


def _batch(
    tools: Tools, remote: Remote, host: Host, batch: tuple[Planned, ...], receipt: Receipt
) -> tuple[Receipt, ToolError | None]:
    began = time.monotonic()
    for planned in batch:
        tools.listen(Event(host.name, "apply", planned.step.title))
    error = _attempt(tools, remote, host, [planned.step for planned in batch])
    outcome = Outcome.FAILED if error else Outcome.CHANGED
    tail = error.said if error else ""
    ids = {planned.step.id for planned in batch}
    spent = time.monotonic() - began
    return receipts.mark(receipt, ids, outcome, seconds=spent, tail=tail), error


def _one_by_one(
    tools: Tools, remote: Remote, host: Host, batch: tuple[Planned, ...], receipt: Receipt
) -> tuple[Receipt, ToolError | None]:
    """Go on singly after a trip that failed: one bad file must not be blamed on its neighbours."""
    seen = observe(tools, remote, host, [planned.step for planned in batch])
    left = [planned for planned in batch if seen[planned.step.id].state is not State.SAME]
    written = {planned.step.id for planned in batch} - {planned.step.id for planned in left}
    receipt = receipts.mark(receipt, written, Outcome.CHANGED, seconds=0.0)
    waiting = {planned.step.id for planned in left}
    receipt = receipts.mark(receipt, waiting, Outcome.NOT_REACHED, seconds=0.0)
    for planned in left:
        receipt, error = _batch(tools, remote, host, (planned,), receipt)
        if error:
            return receipt, error
    return receipt, None


def _attempt(tools: Tools, remote: Remote, host: Host, steps: list[Step]) -> ToolError | None:
    """Act and look again; return what went wrong, with host and step filled in."""
    try:
        _verify(steps, _act(tools, remote, host, steps))
    except ToolError as error:
        return error.at(host=host.name, step=steps[0].title)
    return None


def _act(tools: Tools, remote: Remote, host: Host, steps: list[Step]) -> dict[str, Observation]:
    """Act and return how the host stands then; files are looked at in the trip that writes them."""
    writes = tuple(a for step in steps for a in step.actions if isinstance(a, Write))
    if len(writes) == sum(len(step.actions) for step in steps):
        look = _Look.at(tools, host, steps)
        said = remote.write(writes, then=look.script, seconds=look.seconds).stdout
        return look.seen(tools, remote, host, said)
    remote.write(writes)
    for step in steps:
        for action in step.actions:
            if isinstance(action, Run):
                _run(tools, remote, host, step, action)
            elif isinstance(action, Push):
                remote.push(action)
            elif isinstance(action, Carry) and tools.freight is not None:
                tools.freight.carry(host, action)
    return observe(tools, remote, host, steps)


def _run(tools: Tools, remote: Remote, host: Host, step: Step, action: Run) -> None:
    result = remote.run(
        action, on_line=lambda line: tools.listen(Event(host.name, step.title, line))
    )
    if result.exit not in action.answers:
        raise CommandFailed(
            f"cannot {step.title}: exit {result.exit} after {result.seconds:.0f} s",
            ran=action.told or shown(action.words),
            exit_code=result.exit,
            said=result.tail(),
            remedy="mend what it says, then run the same command again: what is done is kept",
        )


def _verify(steps: Iterable[Step], found: dict[str, Observation]) -> None:
    for step in steps:
        seen = found[step.id]
        if seen.state is not State.SAME:
            raise VerifyFailed(
                f"cannot verify {step.title}: wanted {step.wanted}, found {seen.found or seen.why}",
                step=step.title,
                said=seen.detail[-2000:],
                remedy="look at what else writes there, then run the same command again",
            )


def _log(remote: Remote, host: Host, receipt: Receipt) -> ToolError | None:
    """Append one line to the log on the host; return what stood in the way, the line included."""
    try:
        return _logged(remote, receipt)
    except ToolError as error:
        return error.at(host=host.name, step="log")


def _logged(remote: Remote, receipt: Receipt) -> ToolError | None:
    script = '{ [ -d "${2%/*}" ] || mkdir -p "${2%/*}"; } && printf %s "$1" >>"$2"'
    words = ("sh", "-c", script, "sh", receipts.log_line(receipt), HOST_LOG)
    result = remote.run(Run(words))
    if result.exit == 0:
        return None
    return CommandFailed(
        f"cannot append to {HOST_LOG}; the plan itself was applied",
        ran=shown(words),
        exit_code=result.exit,
        said=result.tail(),
        remedy=f"make {HOST_LOG} writable for the login, or set sudo: true for the host",
    )
