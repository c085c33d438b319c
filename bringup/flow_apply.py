"""Apply a plan: lock, act step by step, look again after each change, write the receipt."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from .core import receipt as receipts
from .core.errors import CommandFailed, ToolError, VerifyFailed
from .core.event import Event
from .core.host import Host
from .core.plan import Plan, Planned
from .core.receipt import Outcome, Receipt
from .core.remote import Reader, Remote
from .core.script import Answer, Ask, Section, compose, seconds_for, split
from .core.steps import Observation, Push, Run, State, Step, Write, observed
from .core.words import HostPath, shown
from .steps import together

if TYPE_CHECKING:
    from .flow_types import Tools

HOST_LOG = HostPath("/var/log/bringup.log")


def observe(
    tools: Tools, reader: Reader, host: Host, steps: Iterable[Step]
) -> dict[str, Observation]:
    """Return how a host stands to all steps, in one trip: all files by one look.

    A second trip asks, each by itself, for what the shared look could not tell.
    """
    wishes = {step.id: step for step in steps}
    shared, others = together.apart(wishes.values())
    answer = _asked(tools, reader, host, (*together.asks(shared), *(s.ask for s in others)))
    found = together.sections(shared, answer) | {step.id: answer[step.id] for step in others}
    left = [step.ask for step in shared if step.id not in found]
    found |= _asked(tools, reader, host, left).sections
    return {
        name: observed(wish, found.get(name, Section(name, None, "")))
        for name, wish in wishes.items()
    }


def _asked(tools: Tools, reader: Reader, host: Host, asks: Sequence[Ask]) -> Answer:
    """Return the answer to some questions, in one trip; nothing is asked for nothing."""
    if not asks:
        return Answer({}, complete=True)
    nonce = tools.nonce()
    script = compose(asks, nonce=nonce, root=host.root)
    return split(reader.read(script, seconds=seconds_for(asks)).stdout, nonce=nonce)


def apply(tools: Tools, host: Host, plan: Plan) -> tuple[Receipt, str, ToolError | None]:
    """Apply a plan under the host's lock; return the receipt, where it lies, and what failed.

    A failed step ends the host's run: later steps are marked as not reached. Raises LockHeld,
    before anything is changed, where somebody else is at work on the host.
    """
    remote = tools.fleet.remote(host.name)
    receipt = receipts.blank(plan, operator=tools.operator, began=tools.moment())
    error: ToolError | None = None
    with remote.lock(f"{tools.operator} since {receipt.began}: applying plan {plan.digest[:19]}"):
        for batch in batches(plan.changes):
            receipt, error = _batch(tools, remote, host, batch, receipt)
            if error:
                break
        receipt = replace(receipt, ended=tools.moment())
        error = error or _log(remote, receipt)
    record = tools.store.save_receipt(host.name, receipts.document(receipt), stamp=receipt.began)
    return receipt, str(record), error


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
    for planned in batch:
        spent = time.monotonic() - began
        receipt = receipts.mark(receipt, planned.step.id, outcome, seconds=spent, tail=tail)
    return receipt, error


def _attempt(tools: Tools, remote: Remote, host: Host, steps: list[Step]) -> ToolError | None:
    """Act and look again; return what went wrong, with host and step filled in."""
    try:
        _act(tools, remote, host, steps)
        _verify(steps, observe(tools, remote, host, steps))
    except ToolError as error:
        return error.at(host=host.name, step=steps[0].title)
    return None


def _act(tools: Tools, remote: Remote, host: Host, steps: list[Step]) -> None:
    writes = tuple(a for step in steps for a in step.actions if isinstance(a, Write))
    if writes:
        remote.write(writes)
    for step in steps:
        for action in step.actions:
            if isinstance(action, Run):
                _run(tools, remote, host, step, action)
            elif isinstance(action, Push):
                remote.push(action)


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


def _log(remote: Remote, receipt: Receipt) -> ToolError | None:
    """Append one line to the log on the host."""
    script = 'mkdir -p "${2%/*}" && printf %s "$1" >>"$2"'
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
