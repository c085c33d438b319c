"""Look at hosts: one connection and one command each, side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..core.errors import ToolError, UsageError
from ..core.event import Event
from ..core.facts import Facts, Probe, read
from ..core.host import Host
from ..core.remote import Reader, Trusted, Trusts
from ..core.script import compose, lacks_root, seconds_for, split
from ..edge.pool import each
from ..probes.access import trusting
from ..probes.clock import timed
from ..probes.scope import corrected

if TYPE_CHECKING:
    from .types import Tools

Probes = Callable[[Host], tuple[Probe[Any], ...]]


def gather(
    tools: Tools,
    hosts: Iterable[Host],
    probes_of: Probes,
    *,
    found_on: Callable[[str, Facts | ToolError], None] = lambda _name, _found: None,
) -> Mapping[str, Facts | ToolError]:
    """Return the facts of every host, or why there are none; a sick host stops itself alone.

    `found_on` hears of each host as soon as it is done, in the caller's thread.
    """
    found: dict[str, Facts | ToolError] = {}
    for outcome in each(hosts, lambda host: look(tools, host, probes_of), limit=tools.limit):
        name = outcome.item.name
        found[name] = seen(tools, name, outcome.value, outcome.error)
        found_on(name, found[name])
    return found


def seen(
    tools: Tools, name: str, facts: Facts | None, error: Exception | None
) -> Facts | ToolError:
    """Return what a look gave, told to whoever listens; raises what no ToolError explains."""
    if isinstance(error, ToolError):
        tools.listen(Event(name, "probe", error.message, is_end=True))
        return error.at(host=name, step="probe")
    if error is not None:
        raise error
    assert facts is not None
    return facts


def look(tools: Tools, host: Host, probes_of: Probes) -> Facts:
    """Return the facts of one host, by one command over its connection."""
    tools.listen(Event(host.name, "probe", "looking"))
    facts = _look(tools, host, probes_of(host))
    tools.listen(Event(host.name, "probe", "done", is_end=True))
    return facts


def _look(tools: Tools, host: Host, probes: tuple[Probe[Any], ...]) -> Facts:
    nonce = tools.nonce()
    asks = [probe.ask for probe in probes]
    script = compose(asks, nonce=nonce, root=host.root)
    sent = time.time()
    remote = tools.fleet.remote(host.name)
    result = remote.read(script, seconds=seconds_for(asks))
    received = time.time()
    if lacks_root(result.stdout, nonce=nonce):
        raise _rootless(host)
    tools.store.save_facts(host.name, result.stdout, stamp=tools.moment())
    facts = trusting(read(probes, split(result.stdout, nonce=nonce)), _trusted(remote))
    return timed(corrected(facts, host), sent, received)


def _rootless(host: Host) -> UsageError:
    return UsageError(
        f"cannot look at {host.name}: root: {host.root} is not a folder on {host.name}",
        host=host.name,
        remedy=f"correct root: in {host.origin.file or 'the inventory'}, or leave it out where the "
        "host is reached as it is",
    )


def _trusted(remote: Reader) -> Trusted | None:
    return remote.trusted() if isinstance(remote, Trusts) else None
