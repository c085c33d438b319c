"""Settle what is to be measured before anything is started: host, GPUs, traffic, kept rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ..bench.command import bench_words, place_of, refusals
from ..bench.derive import SHORT, Ground, impossible
from ..bench.table import Bench, Row, subject
from ..bench.traffic import TRAFFIC, Traffic
from ..core.errors import Blocked, ToolError, UsageError
from ..core.facts import Facts
from ..core.host import Deployment, Inventory
from ..core.nearest import did_you_mean
from ..core.probed import Probed, fact_rows
from ..core.reading import Known
from ..core.words import Secret, shown
from ..engines.engine import CommandLine
from ..engines.topology import gpus_needed
from ..engines.topology_facts import hardware_of, subject_of
from ..engines.topology_load import Topology
from ..options.measuring import Comparison, Pace
from ..probes.gpu import Gpus
from .bench_host import in_use
from .bench_task import Task, accepted
from .gather import gather
from .provision import make_plan, probes_of
from .serve import know
from .types import Order, Tools

ENGINE = "vllm"


def traffic_of(words: Iterable[str], prompts: int = 0) -> tuple[Traffic, ...]:
    """Return traffic by names, or lengths as 4000x500; raises UsageError."""
    found = tuple(map(_traffic, words)) or tuple(TRAFFIC.values())
    return tuple(replace(one, prompts=prompts) for one in found) if prompts else found


def _traffic(word: str) -> Traffic:
    if word in TRAFFIC:
        return TRAFFIC[word]
    first, cross, second = word.partition("x")
    if cross and first.isdecimal() and second.isdecimal() and int(first) and int(second):
        return Traffic(word, int(first), int(second), 128)
    raise UsageError(
        f"cannot run traffic {word!r}: there is none{did_you_mean(word, TRAFFIC)}",
        remedy=f"name one of {', '.join(TRAFFIC)}, or lengths in tokens: 4000x500",
    )


def prepare(
    tools: Tools,
    inventory: Inventory,
    deployment: Deployment,
    asked: Comparison,
    *,
    accept: tuple[str, ...],
    pace: Pace,
) -> tuple[Task, Bench]:
    """Look at the host and return what to measure there, as a run without rows.

    Raises UsageError for what cannot be measured, Blocked where the GPUs are not known.
    """
    traffic = traffic_of(asked.traffic, asked.prompts)
    refuse_unmeasurable(deployment, traffic)
    host = host_of(deployment, asked.host)
    order = Order(inventory, (inventory.hosts[host],), {host: deployment})
    facts = gather(tools, order.hosts, probes_of(order))[host]
    if isinstance(facts, ToolError):
        raise facts
    ground = _ground(deployment, host, facts, asked.gpus)
    task = Task(inventory, deployment, ground, accept, pace.within, pace.every)
    gpu, driver = _gpu_words(facts, ground)
    about = subject(deployment, gpu=gpu, gpus=len(ground.gpus), driver=driver)
    bench = Bench(
        deployment.name, host, tools.moment(), about, traffic, tuple(SHORT), facts=_lines(facts)
    )
    return task, bench


def host_of(deployment: Deployment, said: str) -> str:
    """Return the one host to measure on; raises UsageError where it is not clear."""
    names = tuple(dict.fromkeys(host for role in deployment.roles for host in role.hosts))
    if said in names or (not said and len(names) == 1):
        return said or names[0]
    if said:
        raise UsageError(
            f"cannot measure {deployment.name} on {said!r}: it has no role there"
            + did_you_mean(said, names),
            remedy=f"name one of {', '.join(names)}",
        )
    raise UsageError(
        f"cannot tell on which host of {deployment.name} to measure",
        remedy=f"topologies are compared on one host; name it: --host {names[0]}",
    )


def refuse_unmeasurable(deployment: Deployment, traffic: Iterable[Traffic]) -> None:
    """Raise UsageError where the engine is another than vLLM's, or its tool lacks a flag."""
    if deployment.engine != ENGINE:
        raise UsageError(
            f"cannot measure {deployment.name}: topologies are those of vLLM's own server, its "
            f"engine is {deployment.engine}",
            remedy=(
                "name a deployment with engine: vllm; topologies of another engine are compared as "
                f"deployments, each measured alone: bringup accept --deployment {deployment.name}"
            ),
        )
    place = place_of(deployment, "http://127.0.0.1:8000")
    version = deployment.image.engine_version
    for one in traffic:
        words = bench_words(place, one, "result.json")
        for finding in refusals(words, version):
            raise UsageError(
                f"cannot run vllm bench serve of vLLM {version}: {'; '.join(finding.evidence)}",
                remedy=finding.remedy,
            )


def _ground(deployment: Deployment, host: str, facts: Facts, said: str) -> Ground:
    """Return the GPUs: those that are named, those of the deployment's roles, else all."""
    reading = facts[Gpus]
    every = tuple(gpu.index for gpu in reading.value.gpus) if isinstance(reading, Known) else ()
    roles = deployment.roles_of(host)
    named = sorted({gpu for role in roles for gpu in role.gpus})
    chosen = _numbers(said) or (tuple(named) if all(role.gpus for role in roles) else every)
    if not chosen:
        why = getattr(reading, "why", "") or reading.evidence or "no GPU was found"
        raise Blocked(
            f"cannot tell which GPUs to use: {why}", host=host,
            remedy=f"mend what bringup probe --host {host} says, or name them: --gpus 0,1",
        )  # fmt: skip
    if every and not set(chosen) <= set(every):
        raise UsageError(
            f"cannot use GPUs {said or chosen}: {host} has {', '.join(map(str, every))}"
        )
    return Ground(host, chosen, _need(deployment, facts), chosen == every)


def _numbers(said: str) -> tuple[int, ...]:
    parts = [part.strip() for part in said.split(",") if part.strip()]
    if not all(part.isdecimal() for part in parts) or len(set(parts)) < len(parts):
        raise UsageError(f"cannot read --gpus {said!r}", remedy="write it as --gpus 0,1")
    return tuple(map(int, parts))


def _need(deployment: Deployment, facts: Facts) -> int:
    """Return how many GPUs one copy takes, 1 where nobody could read their memory."""
    hardware = hardware_of((facts,))
    if hardware.memory_gib <= 0:
        return 1
    return gpus_needed(hardware, subject_of(deployment))


def _gpu_words(facts: Facts, ground: Ground) -> tuple[str, str]:
    reading = facts[Gpus]
    if not isinstance(reading, Known):
        return "", ""
    names = {gpu.name for gpu in reading.value.gpus if gpu.index in ground.gpus}
    return " and ".join(sorted(names)), reading.value.driver


def _lines(facts: Facts) -> Mapping[str, str]:
    rows = fact_rows([Probed("host", facts=facts)])
    return {row.name: row.text for row in rows if row.state != "unknown"}


def gone_on(bench: Bench, kept: Iterable[Bench], topologies: tuple[Topology, ...]) -> Bench:
    """Return the run to do: the last one gone on with where it was cut off, else a new one."""
    wanted = replace(bench, topologies=topologies)
    last = next(reversed(tuple(kept)), None)
    if last is None or not _same(last, wanted):
        return wanted
    final = tuple(row.topology for row in last.rows if row.is_final)
    every = tuple(one for one in SHORT if one in topologies or one in final)
    rows = tuple(row for row in last.rows if row.is_final)
    again = replace(last, topologies=every, rows=rows, facts=bench.facts, ended="")
    return wanted if again.is_finished else again


def _same(one: Bench, other: Bench) -> bool:
    mine = (one.host, one.subject, one.traffic)
    return mine == (other.host, other.subject, other.traffic)


@dataclass(frozen=True, slots=True)
class PlannedTopology:
    """What would be done for one topology: its workers' words, or why not."""

    topology: Topology
    state: str  # kept, would start, would be refused, left out
    commands: tuple[str, ...] = ()
    why: str = ""

    @property
    def starts(self) -> bool:
        return self.state == WOULD_START


WOULD_START = "would start"


def plan(tools: Tools, task: Task, bench: Bench) -> tuple[PlannedTopology, ...]:
    """Return what a run would do; starts and writes nothing."""
    used = "" if task.accepts_use else in_use(tools, task.host, task.ground.gpus)
    return tuple(_planned(tools, task, bench, one, used) for one in bench.topologies)


def _planned(
    tools: Tools, task: Task, bench: Bench, topology: Topology, used: str
) -> PlannedTopology:
    row: Row | None = bench.row(topology)
    if row is not None and row.is_final:
        return PlannedTopology(topology, "kept", why=f"{row.state} at {bench.at}")
    if why := impossible(topology, task.ground):
        return PlannedTopology(topology, "left out", why=why)
    wish = task.wish(topology, check=True)
    known = know(tools, wish)
    order = Order(wish.inventory, (task.host,), {task.host.name: wish.deployment}, check=True)
    made = make_plan(tools, order, task.host, known.facts)
    blocks = [one for one in accepted(made.findings, task.accept) if one.level.value == "block"]
    words = tuple(line(part.spec.command) for part in known.parts.values())
    if used or blocks:
        why = used or f"{blocks[0].title} ({blocks[0].id})"
        return PlannedTopology(topology, "would be refused", words, why)
    return PlannedTopology(topology, WOULD_START, words)


def line(command: CommandLine) -> str:
    """Return a worker's words with its variables before them, secrets masked."""
    given = (f"{n}={'***' if isinstance(v, Secret) else v}" for n, v in command.env.items())
    return shown((*given, *command.argv))
