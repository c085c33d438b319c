"""NET-01 to NET-08: services, ports, addresses and names as the host itself sees them."""

from __future__ import annotations

from ipaddress import ip_address

from ..core.reading import Known, Unknown
from ..core.rules import Level, Row, Seen, World, failed, passed, skipped, warned
from ..probes.containers import Containers
from ..probes.identity import Identity
from ..probes.inside import Inside
from ..probes.network import Addresses, Listener, Listeners, Names, Reach
from ..probes.services import QUOTA_BYTES, Etcd, EtcdMember, Nats, is_unasked, word
from . import ports, where
from .checks_gpu_use import OURS
from .judging import SOFT, not_told, unread

ETCD = "https://etcd.io/docs/v3.5/op-guide/monitoring/"
OWN = "docs/checks.md#network"
NEAR_FULL, FULL = 0.85, 0.95  # etcd's own alert set
SLOW_MS = 100


def _etcd(world: World) -> Seen:
    if world.deployment is None or not world.deployment.services.etcd:
        return skipped("no deployment names etcd")
    reading = world.facts[Etcd]
    if not isinstance(reading, Known):
        return unread(reading, essential=True)
    members = reading.value.members
    lines = [f"{m.endpoint}: {_state(m)}" for m in members]
    silent = [m.health for m in members if isinstance(m.health, Unknown)]
    unasked = [health for health in silent if is_unasked(health.why)]
    if len(unasked) == len(members):
        return unread(unasked[0], essential=True)
    trouble = [line for m in members for line in _trouble(m)]
    healthy = len(reading.value.healthy)
    if healthy <= len(members) // 2:
        return failed(*lines, f"{healthy} of {len(members)} endpoints are healthy")
    if trouble:
        return failed(*trouble)
    if healthy < len(members):
        return warned(*lines)
    full = [f"{m.endpoint}: {_share(m):.0%} of its space" for m in members if _share(m) > NEAR_FULL]
    return warned(*full) if full else passed(*lines)


def _state(member: EtcdMember) -> str:
    return f"{word(member.health)}{f', etcd {member.version}' if member.version else ''}"


def _share(member: EtcdMember) -> float:
    return (member.bytes_used or 0) / (member.quota_bytes or QUOTA_BYTES)


def _trouble(member: EtcdMember) -> list[str]:
    found = [f"{member.endpoint}: {alarm}" for alarm in member.alarms]
    if member.version and not member.leader:
        found.append(f"{member.endpoint}: knows no leader")
    if _share(member) > FULL:
        found.append(f"{member.endpoint}: {_share(member):.0%} of its space is used")
    return found


def _write(world: World) -> Seen:
    if world.deployment is None or not world.deployment.services.etcd:
        return skipped("no deployment names etcd")
    reading = world.facts[Etcd]
    if not isinstance(reading, Known):
        return unread(reading)
    tried = {m.endpoint: m.milliseconds for m in reading.value.members}
    times = {e: r.value for e, r in tried.items() if isinstance(r, Known)}
    refused = {
        e: r.why for e, r in tried.items() if isinstance(r, Unknown) and r.why != "not asked"
    }
    if refused:
        return failed(*(f"{endpoint}: {why}" for endpoint, why in refused.items()))
    if not times:
        return not_told("a write to etcd was not asked for")
    lines = [f"{endpoint}: {ms:.0f} ms" for endpoint, ms in times.items()]
    return warned(*lines) if max(times.values()) > SLOW_MS else passed(*lines)


def _nats(world: World) -> Seen:
    if world.deployment is None or not world.deployment.services.nats:
        return skipped("no deployment names NATS")
    reading = world.facts[Nats]
    if isinstance(reading, Known):
        return passed(reading.evidence)
    if isinstance(reading, Unknown) and reading.why != "not asked" and not is_unasked(reading.why):
        return failed(f"{world.deployment.services.nats}: {reading.why}")
    return unread(reading, essential=True)


def _reach(world: World) -> Seen:
    reading = world.facts[Reach]
    if not isinstance(reading, Known):
        return unread(reading)
    met = reading.value.met
    blocked = {target: how for target, how in met.items() if how not in ("open", "refused")}
    if blocked:
        return failed(*(f"{target}: {how}" for target, how in blocked.items()))
    return passed(*(f"{target}: {_met(how)}" for target, how in met.items()))


def _met(how: str) -> str:
    return "reachable, nobody listens yet" if how == "refused" else how


def _free(world: World) -> Seen:
    reading, wanted = world.facts[Listeners], ports.planned(world)
    if not wanted:
        return skipped("no deployment plans ports on this host")
    if not isinstance(reading, Known):
        return unread(reading)
    taken = [(knob, one) for knob, port in wanted.items() for one in reading.value.on(port)]
    foreign = [(knob, one) for knob, one in taken if not _is_ours(world, one)]
    if foreign:
        knob, one = foreign[0]
        lines = {f"{k} {o.port}: {o.owner}" for k, o in foreign}
        remedy = f"set another {knob} for {world.host.name}, or stop {one.owner}"
        return failed(*sorted(lines), remedy=remedy)
    if taken:
        lines = {f"{k} {o.port}: {o.owner}, ours" for k, o in taken}
        return warned(*sorted(lines), level=Level.NOTE)
    return passed("free: " + " ".join(f"{knob} {port}" for knob, port in wanted.items()))


def _is_ours(world: World, one: Listener) -> bool:
    """A port is ours when a container with our label holds it, or a worker runs without one."""
    listed = world.facts[Containers]
    labelled = [c for c in listed.value.containers if c.labels] if isinstance(listed, Known) else []
    in_container = any(c.id and c.id[:12] in one.cgroup for c in labelled)
    is_bare = world.deployment is not None and not world.deployment.in_container
    return in_container or (is_bare and bool(OURS.search(one.command)))


def _advertised(world: World) -> Seen:
    reading = world.facts[Addresses]
    told = where.said(world, "advertise_host") or world.host.advertise
    if not told:
        return _guessed(reading.value) if isinstance(reading, Known) else unread(reading)
    address = str(told)
    try:
        parsed = ip_address(address)
    except ValueError:
        return passed(f"declared: {address}")
    if parsed.is_loopback or parsed.is_unspecified:
        return failed(f"declared: {address}, which no other host can reach")
    if not isinstance(reading, Known):
        return unread(reading)
    if address not in reading.value.by_address:
        return warned(f"declared: {address}", f"on the host: {reading.evidence}")
    interface = reading.value.by_address[address]
    return passed(f"declared: {address}{f' on {interface}' if interface else ''}")


def _guessed(addresses: Addresses) -> Seen:
    usable = addresses.reachable
    if not usable:
        return failed("the host has only local addresses")
    line = f"not declared; the host has {' '.join(usable)}"
    return warned(line, level=Level.NOTE)


def _names(world: World) -> Seen:
    reading = world.facts[Names]
    if world.deployment is None and not isinstance(reading, Known):
        return skipped("no deployment names services")
    if not isinstance(reading, Known):
        return unread(reading)
    own = world.facts[Addresses]
    identity = world.facts[Identity]
    told = identity.value.hostname if isinstance(identity, Known) else ""
    name = own.value.host_name if isinstance(own, Known) else told
    lost = [n for n, found in reading.value.addresses.items() if not found and n != name]
    if lost:
        return failed(*(f"{n} does not resolve" for n in lost))
    local = [a for a in reading.value.addresses.get(name, ()) if a.startswith("127.") or a == "::1"]
    if local:
        matters = world.deployment and world.role and where.needs_network(
            world.deployment, world.role
        )  # fmt: skip
        level = Level.WARN if matters else Level.NOTE
        return warned(f"the host's own name {name} resolves to {local[0]}", level=level)
    return passed(reading.evidence)


def _versions(world: World) -> Seen:
    if world.deployment is None:
        return skipped("no deployment")
    want, inside = world.deployment.image.dynamo_version, world.facts[Inside]
    have = inside.value.packages.get("ai-dynamo", "") if isinstance(inside, Known) else ""
    if not want or not have:
        return not_told("versions of Dynamo in frontend and worker")
    if want == have:
        return passed(f"ai-dynamo {have}")
    return failed(f"image.yml says {want}, the container has {have}")


ROWS: tuple[Row[World], ...] = (
    Row(
        "NET-01", "etcd is healthy from this host", _etcd,
        "workers register in etcd after 25 minutes of loading; better to know before",
        ETCD, "etcdctl --endpoints ENDPOINTS endpoint status -w table; then its log",
    ),
    Row(
        "NET-02", "etcd takes writes", _write,
        "a full or read-only etcd is healthy to look at and refuses registration",
        ETCD, "etcdctl alarm list; check rights of the user and TLS files", SOFT,
    ),
    Row(
        "NET-03", "NATS answers this host", _nats,
        "a worker that is told of NATS does not start while it is down",
        "https://docs.nats.io/reference/reference-protocols/nats-protocol",
        "open the port in the firewall, or start the server; look: nc -v HOST 4222",
    ),
    Row(
        "NET-04", "Peers are reachable on the ports that they will use", _reach,
        "decode finds prefill through its bootstrap port; a dropped packet shows as a hang",
        OWN, "open the port between the hosts; set advertise for the host",
    ),
    Row(
        "NET-05", "Planned ports are free", _free,
        "the engine ends at start when its port is taken, after loading the weights",
        OWN, "our own worker holds it: stop it before a second one",
    ),
    Row(
        "NET-06", "Other hosts are told an address that they can reach", _advertised,
        "on hosts with many cards a guess takes the wrong one",
        "https://github.com/lightseekorg/smg/pull/2520",
        "set advertise: ADDRESS for the host in inventory/hosts.yml", SOFT,
    ),
    Row(
        "NET-07", "Names of services resolve", _names,
        "a name that does not resolve ends the worker at start; an own name on loopback is what "
        "it may announce to others",
        OWN, "add the name to DNS or /etc/hosts, with the address that other hosts use",
    ),
    Row(
        "NET-08", "Frontend and worker run one Dynamo", _versions,
        "cards and messages change between minor versions",
        "https://github.com/ai-dynamo/dynamo/releases", "build the image anew", SOFT,
    ),
)  # fmt: skip
