"""Who holds the ports that a service, or what is in front, is to listen on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..core.host import Host
from ..core.reading import Known
from ..core.rules import Finding, Level, Status
from ..core.script import compose, seconds_for, split
from ..probes.network import Listener, listeners_probe
from .types import Tools

SOURCE = "docs/serve.md#what-is-checked-before-a-start"


def taken(tools: Tools, host: Host, ports: Mapping[str, int]) -> tuple[Finding, ...]:
    """Return a refusal for each planned port that somebody holds; `ports` are by who wants them.

    Nothing is said where the host could not be asked: the script itself looks again.
    """
    probe = listeners_probe(ports.values())
    nonce = tools.nonce()
    script = compose([probe.ask], nonce=nonce, root=host.root)
    result = tools.fleet.remote(host.name).read(script, seconds=seconds_for([probe.ask]))
    reading = probe.parse(split(result.stdout, nonce=nonce)[probe.name])
    if not isinstance(reading, Known):
        return ()
    held = ((name, one) for name, port in ports.items() for one in reading.value.on(port))
    return tuple(_refusals(host, held))


def _refusals(host: Host, held: Iterable[tuple[str, Listener]]) -> Iterator[Finding]:
    every = {(name, one.port): one for name, one in held}  # IPv4 and IPv6 alike: once
    for (name, port), one in sorted(every.items()):
        yield Finding(
            "serve-port", f"Port {port} of {name} is taken", Status.FAIL, Level.BLOCK, host.name,
            (f"port {port}: {one.owner}",),
            "what listens there would be asked in its place, or keep it from starting",
            f"stop {one.owner}, or give {name} another port in services", SOURCE,
        )  # fmt: skip
