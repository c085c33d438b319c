"""Look at hosts: one connection and one command each, side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .core.errors import ToolError
from .core.event import Event
from .core.facts import Facts, Probe, read
from .core.host import Host
from .core.script import compose, seconds_for, split
from .edge.pool import each
from .probes.clock import timed
from .probes.scope import corrected

if TYPE_CHECKING:
    from .flow_types import Tools

Probes = Callable[[Host], tuple[Probe[Any], ...]]


def gather(
    tools: Tools, hosts: Iterable[Host], probes_of: Probes
) -> Mapping[str, Facts | ToolError]:
    """Return the facts of every host, or why there are none; a sick host stops itself alone."""

    def look(host: Host) -> Facts:
        tools.listen(Event(host.name, "probe", "looking"))
        facts = _look(tools, host, probes_of(host))
        tools.listen(Event(host.name, "probe", "done", is_end=True))
        return facts

    found: dict[str, Facts | ToolError] = {}
    for outcome in each(hosts, look, limit=tools.limit):
        name, error = outcome.item.name, outcome.error
        if isinstance(error, ToolError):
            tools.listen(Event(name, "probe", error.message, is_end=True))
            found[name] = error.at(host=name, step="probe")
        elif error is not None:
            raise error
        elif outcome.value is not None:
            found[name] = outcome.value
    return found


def _look(tools: Tools, host: Host, probes: tuple[Probe[Any], ...]) -> Facts:
    nonce = tools.nonce()
    asks = [probe.ask for probe in probes]
    script = compose(asks, nonce=nonce, root=host.root)
    sent = time.time()
    result = tools.fleet.remote(host.name).read(script, seconds=seconds_for(asks))
    received = time.time()
    tools.store.save_facts(host.name, result.stdout, stamp=tools.moment())
    facts = read(probes, split(result.stdout, nonce=nonce))
    return timed(corrected(facts, host), sent, received)
