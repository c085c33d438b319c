"""Take hosts from Slurm: reserve or drain, wait for jobs; and give them back in reverse order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from ..core.errors import Blocked, Exit, Interrupted, ToolError
from ..core.event import Event
from ..core.facts import read
from ..core.host import Host
from ..core.plan import Plan, plan_steps
from ..core.reading import Absent, Known, Unknown
from ..core.remote import Looking
from ..core.script import Answer
from ..core.steps import Step
from ..edge.pool import each
from ..edge.site import site_of
from ..options.slurm import Taking
from ..probes import slurm as probe
from ..probes.slurm import Slurm
from ..probes.slurm_queue import NAME, QueuedJob, parse_queue, queue_ask
from ..steps.slurm import drain_step, free_step, reserve_step, undrain_step
from .apply import apply, observe
from .types import Tools

POLL_S = 10.0


@dataclass(frozen=True, slots=True)
class Held:
    """How one host came out. `node` is Slurm's name of it, "" where Slurm does not know it."""

    host: str
    node: str = ""
    plan: Plan | None = None
    jobs: tuple[QueuedJob, ...] = ()
    note: str = ""
    waited_s: float = 0.0
    is_check: bool = False
    error: ToolError | None = None

    @property
    def changes(self) -> tuple[str, ...]:
        """What was done, or would be."""
        return tuple(p.step.title for p in self.plan.changes) if self.plan else ()

    @property
    def code(self) -> Exit:
        if self.error is not None:
            return self.error.code
        return Exit.WOULD_CHANGE if self.is_check and (self.changes or self.jobs) else Exit.DONE


@dataclass(slots=True)
class _Run:
    """One run over hosts: what it took, so that a stop gives it back."""

    tools: Tools
    wish: Taking
    check: bool
    poll_s: float
    stop: threading.Event = field(default_factory=threading.Event)
    taken: dict[str, tuple[Host, str]] = field(default_factory=dict)

    def take(self, host: Host) -> Held:
        """Take one host and wait for its jobs. Raises ToolError; what was taken is given back."""
        node = node_of(host, self.tools)
        if not node.node:
            return node
        plan = _planned(self.tools, host, self._steps(node.node))
        _refuse_others(host, plan)
        jobs = queue(host, self.tools, node.node)
        if self.check:
            return Held(host.name, node.node, plan, jobs, is_check=True)
        if plan.changes:
            self.taken[host.name] = host, node.node
            _applied(self.tools, host, plan)
        note = "" if plan.changes else "nothing to do: it was kept free before"
        return self._wait(Held(host.name, node.node, plan, jobs, note), host)

    def _steps(self, node: str) -> tuple[Step, ...]:
        wish = self.wish
        ends = datetime.now(UTC) + timedelta(days=wish.days)
        reason = f"{wish.reason or 'serving'} until {ends:%Y-%m-%d}"
        why = "Slurm does not see workers outside its control groups"
        if wish.drain:
            return (drain_step(node, reason, why=why),)
        return (reserve_step(node, user=wish.user, days=wish.days, why=why),)

    def _wait(self, held: Held, host: Host) -> Held:
        """Wait until no job is left on the node. Jobs are never cancelled."""
        began, first, trouble = time.monotonic(), max(1, len(held.jobs)), ""
        jobs = held.jobs
        while jobs or trouble:
            waited = time.monotonic() - began
            if waited >= self.wish.wait_s:
                return self._late(replace(held, jobs=jobs, waited_s=waited), host, trouble)
            said = trouble or f"{len(jobs)} left: {', '.join(map(str, jobs[:3]))}"
            share = max(0.0, 1 - len(jobs) / first)
            self.tools.listen(Event(host.name, "wait", said, share))
            if self.stop.wait(min(self.poll_s, max(0.1, self.wish.wait_s - waited))):
                raise Interrupted("cannot finish: the run was stopped", host=host.name)
            try:
                jobs, trouble = queue(host, self.tools, held.node), ""
            except ToolError as error:
                trouble = error.message
        return replace(held, jobs=(), waited_s=time.monotonic() - began)

    def _late(self, held: Held, host: Host, trouble: str) -> Held:
        if self.wish.keep:
            return replace(held, note="jobs still run; the host is kept for us as they end")
        given = "it was given back" if self._give_back(host.name) else "it was ours before"
        raise Blocked(
            f"cannot have {held.node} from Slurm: after {held.waited_s:.0f} s"
            f" {trouble or _running(held.jobs)}; {given}",
            host=host.name,
            said="\n".join(map(str, held.jobs[:8])),
            remedy=f"bringup slurm.take --host {host.name} --wait-s 86400 waits longer; --keep"
            " holds the host as jobs end; or ask their owners",
        )

    def _give_back(self, name: str) -> bool:
        found = self.taken.pop(name, None)
        if found is None:
            return False
        give_one(self.tools, *found)
        return True

    def give_back_all(self) -> None:
        """Give back what this run took, newest first; one that fails does not hold up others."""
        self.stop.set()
        for name in reversed(tuple(self.taken)):
            self.tools.listen(Event(name, "give back", self.taken[name][1]))
            try:
                self._give_back(name)
            except ToolError as error:
                self.tools.listen(Event(name, "give back", error.message))


def _running(jobs: tuple[QueuedJob, ...]) -> str:
    return "1 job still runs" if len(jobs) == 1 else f"{len(jobs)} jobs still run"


def take(
    tools: Tools,
    hosts: Iterable[Host],
    wish: Taking,
    *,
    check: bool = False,
    poll_s: float = POLL_S,
) -> tuple[Held, ...]:
    """Take hosts from Slurm, side by side. A stop (Ctrl-C) gives back what this run took."""
    run = _Run(tools, wish, check, poll_s)
    try:
        return _each(tools, tuple(hosts), run.take, run.stop)
    except BaseException:
        run.give_back_all()
        raise


def give(tools: Tools, hosts: Iterable[Host], *, check: bool = False) -> tuple[Held, ...]:
    """Give hosts back to Slurm: our drain first, then our reservation; those of others stay."""

    def one(host: Host) -> Held:
        held = node_of(host, tools)
        if not held.node:
            return held
        if check:
            plan = _planned(tools, host, _ways_back(held.node))
            return Held(host.name, held.node, plan, is_check=True)
        return Held(host.name, held.node, give_one(tools, host, held.node))

    return _each(tools, tuple(hosts), one, threading.Event())


def give_one(tools: Tools, host: Host, node: str) -> Plan:
    """Give one node back; return what was done. Raises ToolError."""
    plan = _planned(tools, host, _ways_back(node))
    if plan.changes:
        _applied(tools, host, plan)
    return plan


def _ways_back(node: str) -> tuple[Step, ...]:
    return undrain_step(node), free_step(node)


def _each(
    tools: Tools, hosts: tuple[Host, ...], one: Callable[[Host], Held], stop: threading.Event
) -> tuple[Held, ...]:
    found: dict[str, Held] = {}
    for outcome in each(hosts, one, limit=tools.limit, stop=stop):
        name, error = outcome.item.name, outcome.error
        if isinstance(error, ToolError):
            found[name] = Held(name, error=error.at(host=name))
        elif error is not None:
            raise error
        elif outcome.value is not None:
            found[name] = outcome.value
        tools.listen(Event(name, "slurm", "done" if error is None else "failed", is_end=True))
    return tuple(found[host.name] for host in hosts)


def node_of(host: Host, tools: Tools) -> Held:
    """Return Slurm's name of a host; with a note instead where Slurm surely does not use it."""
    one = probe.PROBES[0]
    tools.listen(Event(host.name, "slurm", "looking at the node"))
    sections = site_of(host, tools.fleet.remote(host.name)).ask((one.ask,))
    seen = read((one,), Answer(sections, complete=True))[Slurm]
    node = seen.value.node if isinstance(seen, Known) else seen
    if isinstance(node, Absent):
        return Held(host.name, note=f"nothing to do: {node.evidence}")
    if isinstance(node, Unknown):
        raise Blocked(
            f"cannot tell how Slurm sees {host.name}: {node.why}",
            host=host.name,
            remedy="scontrol ping; scontrol show node: when its controller answers, run again",
        )
    return Held(host.name, node.value.name)


def queue(host: Host, tools: Tools, node: str) -> tuple[QueuedJob, ...]:
    """Return the jobs on a node. Raises Blocked where nobody could look: that is not "none"."""
    ask = queue_ask(node)
    section = site_of(host, tools.fleet.remote(host.name)).ask((ask,))[NAME]
    seen = parse_queue(section)
    if isinstance(seen, Known):
        return seen.value
    why = seen.why if isinstance(seen, Unknown) else seen.evidence
    raise Blocked(
        f"cannot tell which jobs run on {node}: {why}",
        host=host.name,
        remedy="scontrol ping; when Slurm's controller answers, run again",
    )


def _planned(tools: Tools, host: Host, steps: tuple[Step, ...]) -> Plan:
    seen = observe(tools, Looking(tools.fleet.remote(host.name)), host, steps)
    return Plan(host.name, tools.version, "", "", (), (), plan_steps(steps, seen))


def _refuse_others(host: Host, plan: Plan) -> None:
    for planned in plan.changes:
        if planned.observation.found == "reserved for others":
            raise Blocked(
                f"cannot {planned.step.title}: a reservation of that name holds other nodes",
                host=host.name,
                remedy="scontrol show reservation; end it by hand if it is a leftover",
            )


def _applied(tools: Tools, host: Host, plan: Plan) -> None:
    error = apply(tools, host, plan)[2]
    if error is not None:
        raise error
