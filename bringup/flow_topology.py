"""Topology advice for a deployment: look at its hosts, then argue."""

from __future__ import annotations

from .core.errors import ToolError, UsageError
from .core.event import Listen
from .core.facts import Facts
from .engines.topology import Advice, Subject, Witness, advise
from .engines.topology_facts import hardware_of, subject_of
from .engines.topology_load import Workload
from .flow import needed, probes_of
from .flow_gather import gather
from .flow_open import Choice, read_inventory, tools_for
from .flow_types import Order


def advise_on(
    choice: Choice, deployment: str, workload: Workload, witness: Witness | None, listen: Listen
) -> tuple[Advice, Subject]:
    """Return the advice for a deployment's hosts as they are found now.

    Raises UsageError for an unknown deployment, or the error of a host that cannot be looked at.
    """
    from .core.nearest import did_you_mean

    inventory = read_inventory(choice.inventory)
    if deployment not in inventory.deployments:
        known = did_you_mean(deployment, inventory.deployments)
        raise UsageError(f"cannot find deployment {deployment!r}{known}")
    chosen = inventory.deployments[deployment]
    names = dict.fromkeys(host for role in chosen.roles for host in role.hosts)
    hosts = tuple(inventory.hosts[name] for name in names)
    order = Order(inventory, hosts, dict.fromkeys(names, chosen), check=True)
    with tools_for(inventory, choice, listen) as tools:
        found = gather(tools, needed(order), probes_of(order))
    facts: list[Facts] = []
    for name in names:
        own = found[name]
        if isinstance(own, ToolError):
            raise own
        facts.append(own)
    subject = subject_of(chosen)
    return advise(hardware_of(facts), subject, workload, witness), subject
