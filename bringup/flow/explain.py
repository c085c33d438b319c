"""Why is it so on this host: look, decide, and follow the chain back from a flag to a fact."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.errors import ToolError
from ..core.event import Listen
from ..core.facts import Facts
from ..core.rules import Finding
from ..decide import Design, design
from ..engines.explain import Explanation, explain, explain_flag, explain_knob_on
from ..options.hosts import HostSelection, Workspace
from .gather import gather
from .open import choose, deployments_for, read_inventory, tools_for
from .provision import needed, probes_of
from .types import Order


def explain_there(
    workspace: Workspace, wanted: HostSelection, deployment: str, name: str, listen: Listen
) -> tuple[Explanation, ...]:
    """Return why a rule, knob or flag is as it is on the chosen hosts.

    Raises UsageError for a name that nobody knows or that does not stand there.
    """
    inventory = read_inventory(workspace.inventory)
    hosts = choose(inventory, wanted)
    order = Order(inventory, hosts, deployments_for(inventory, hosts, deployment), check=True)
    with tools_for(inventory, workspace, listen) as tools:
        found = gather(tools, needed(order), probes_of(order))
    facts = {host: one for host, one in found.items() if isinstance(one, Facts)}
    told: list[Explanation] = []
    for host in hosts:
        own = found[host.name]
        if isinstance(own, ToolError):
            raise own
        designed = design(inventory, host, order.deployments.get(host.name), facts, {})
        told += _told(designed, name)
    return tuple(told) or (explain(name),)


def _told(found: Design, name: str) -> Iterator[Explanation]:
    """Yield the findings of that name, else the chain of the flag, variable or knob."""
    findings = [finding for finding in found.findings if finding.id == name]
    yield from (_finding(finding) for finding in findings)
    if findings:
        return
    for part in found.parts:
        why = part.spec.command.why
        if flag := next((word for word in (name, f"--{name}") if word in why), ""):
            yield explain_flag(flag, part.spec, found.findings)
        elif name in part.spec.decisions:
            yield explain_knob_on(name, part.spec, found.findings)


def _finding(finding: Finding) -> Explanation:
    lines = [("host", finding.host), ("status", f"{finding.status.value}, {finding.level.value}")]
    lines += [("seen", line) for line in finding.evidence]
    lines.append(("reason", finding.reason))
    lines += [("decides", f"{knob} = {value}") for knob, value in finding.decide.items()]
    lines += [("do", finding.remedy)] if finding.remedy else []
    return Explanation(f"{finding.id}: {finding.title}", tuple(lines), finding.source)
