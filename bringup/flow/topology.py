"""Topology advice for a deployment: look at its hosts, then argue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..bench.table import FAILED, Bench, Row
from ..core.errors import ToolError
from ..core.event import Listen
from ..core.facts import Facts
from ..core.host import Deployment
from ..core.reading import Known
from ..engines.topology import Advice, Subject, Witness, advise
from ..engines.topology_facts import hardware_of, subject_of
from ..engines.topology_load import Workload
from ..engines.topology_measured import Trial, Trials, nearest
from ..options.hosts import Workspace
from ..probes.gpu import Gpu, Gpus
from .bench_keep import all_kept
from .gather import gather
from .open import read_inventory, tools_for
from .provision import needed, probes_of
from .types import Order


def advise_on(
    workspace: Workspace,
    deployment: str,
    workload: Workload,
    witness: Witness | None,
    listen: Listen,
) -> tuple[Advice, Subject]:
    """Return the advice for a deployment's hosts as they are found now.

    Raises UsageError for an unknown deployment, or the error of a host that cannot be looked at.
    """
    inventory = read_inventory(workspace.inventory)
    chosen = inventory.deployment(deployment)
    names = dict.fromkeys(host for role in chosen.roles for host in role.hosts)
    hosts = tuple(inventory.hosts[name] for name in names)
    order = Order(inventory, hosts, dict.fromkeys(names, chosen), check=True)
    with tools_for(inventory, workspace, listen) as tools:
        found = gather(tools, needed(order), probes_of(order))
    facts: list[Facts] = []
    for name in names:
        own = found[name]
        if isinstance(own, ToolError):
            raise own
        facts.append(own)
    subject = subject_of(chosen)
    trials = nearest(trials_of(all_kept(tools.store.folder), chosen, facts), workload)
    return advise(hardware_of(facts), subject, workload, witness, trials), subject


def trials_of(
    kept: Iterable[Bench], deployment: Deployment, facts: Iterable[Facts]
) -> Iterator[Trials]:
    """Yield what was measured of this model on such GPUs, the newest run first."""
    every = tuple(facts)
    kinds = {gpu.name for one in every for gpu in _gpus(one)}
    counts = {len(_gpus(one)) for one in every}
    image, model = deployment.image, deployment.model
    name = image.digest or image.reference or image.name
    for bench in reversed(tuple(kept)):
        about = bench.subject
        if (about.model, about.revision, about.engine) != (
            model.path, model.revision, deployment.engine,
        ):  # fmt: skip
            continue
        if {about.gpu} == kinds and {about.gpus} == counts:
            yield from _trials(bench, about.image == name, len(every))


def _gpus(facts: Facts) -> tuple[Gpu, ...]:
    reading = facts[Gpus]
    return reading.value.gpus if isinstance(reading, Known) else ()


def _trials(bench: Bench, same_image: bool, hosts: int) -> Iterator[Trials]:
    for traffic in bench.traffic:
        found = tuple(filter(None, (_trial(row, traffic.name) for row in bench.rows)))
        image = f"{bench.subject.image[:19]}, {bench.subject.engine_version}".rstrip(", ")
        if found:
            yield Trials(
                traffic.input_tokens, traffic.output_tokens, found, same_image, image,
                bench.at, hosts,
            )  # fmt: skip


def _trial(row: Row, traffic: str) -> Trial | None:
    """Return how a topology came out with a traffic; None where that was not tried to the end."""
    one = row.of(traffic)
    if one is not None and not one.fault:
        return Trial(row.topology, one.output_tokens_s, one.itl_p95_ms)
    if row.state == FAILED and row.start_s is None:
        return Trial(row.topology, why=row.why)
    return None
