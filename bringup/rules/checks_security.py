"""SEC-01 to SEC-06: whom we trust, what we may do, and what others may reach."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from ..core.reading import Absent, Known
from ..core.rules import Level, Row, Seen, World, failed, passed, skipped, warned
from ..core.version import at_least
from ..probes.access import Access, HostKey
from ..probes.container import ContainerToolkit
from . import where
from .checks_gpu_driver import driver_version
from .judging import SOFT, not_told, unread

SAFE_TOOLKIT = "1.17.8"
SECRET = re.compile(r"(?i)(token|secret|password|passwd|api_?key|credential)")


def _key(world: World) -> Seen:
    reading = world.facts[HostKey]
    if isinstance(reading, Known):
        line = f"{reading.value.trust}: {reading.value.fingerprint or 'fingerprint not told'}"
        return (
            warned(line, level=Level.NOTE) if reading.value.trust == "first use" else passed(line)
        )
    if world.host.login.host_key:
        return passed(f"pinned in the inventory: {world.host.login.host_key}")
    return skipped("known_hosts decided when the connection was made; a changed key is refused")


def _privileges(world: World) -> Seen:
    reading = world.facts[Access]
    if not isinstance(reading, Known):
        return unread(reading)
    access = reading.value
    if access.is_root or access.sudo == "passwordless":
        return passed(f"{access.user}: {'root' if access.is_root else 'sudo without a password'}")
    docker = "docker" in access.groups
    also = "in group docker" if docker else "not in group docker"
    if access.sudo in ("asks", "refused", "missing"):
        line = f"{access.user}: sudo {access.sudo}, {also}"
        return warned(line, access.said) if docker else failed(line, access.said)
    return not_told(f"whether {access.user} may use sudo") if not docker else passed(also)


def _privileged(world: World) -> Seen:
    if world.deployment is None:
        return skipped("nothing is to be served here")
    if not world.deployment.in_container:
        return skipped("the engine runs without a container")
    privileges = where.said(world, "privileges")
    if privileges == "privileged":
        return warned("privileges: privileged", level=Level.NOTE)
    return passed("single devices and IPC_LOCK")


def _secrets(world: World) -> Seen:
    """Settings that people wrote in the open; rendered files are checked when they are written."""
    if world.deployment is None or world.role is None:
        return skipped("nothing is to be served here")
    if not world.role.env:
        return skipped("the role sets no environment of its own")
    open_words = sorted(
        name for name, value in world.role.env.items() if SECRET.search(name) and value
    )
    if open_words:
        return failed(f"in the deployment's file as plain text: {', '.join(open_words)}")
    return passed("no name in the role's environment looks like a secret")


def _plain(world: World) -> Seen:
    if world.deployment is None:
        return skipped("nothing is to be served here")
    services = world.deployment.services
    urls = [url for url in (*services.etcd, services.nats) if url]
    if not urls:
        return skipped("no etcd and no NATS is used")
    plain = [url for url in urls if urlsplit(url).scheme not in ("https", "tls", "wss")]
    if plain:
        return warned(*(f"{_bare(url)} is not encrypted" for url in plain), level=Level.NOTE)
    return passed("etcd and NATS are reached over TLS")


def _bare(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"


def _known_faults(world: World) -> Seen:
    reading, driver = world.facts[ContainerToolkit], driver_version(world)
    toolkit = reading.value.version if isinstance(reading, Known) else ""
    if toolkit and at_least(toolkit, SAFE_TOOLKIT) is False:
        return failed(f"container toolkit {toolkit}: escape from the container (CVE-2025-23266)")
    if isinstance(reading, Absent):
        return skipped("no container toolkit on this host")
    if not toolkit and not driver:
        return not_told("versions of driver and container toolkit")
    if not toolkit:
        return not_told("the version of the container toolkit")
    return passed(f"container toolkit {toolkit}")


ROWS: tuple[Row[World], ...] = (
    Row(
        "SEC-01",
        "The host's SSH key is trusted",
        _key,
        reason="whoever answers under another key may be another machine",
        source="https://github.com/fabric/fabric/issues/2071",
        remedy="pin it: host_key: SHA256:… in hosts.yml (ssh-keyscan HOST | ssh-keygen -lf -)",
    ),
    Row(
        "SEC-02",
        "The login may do what is planned",
        _privileges,
        reason="a change that needs root stops halfway where sudo asks for a password",
        source="docs/operate.md",
        remedy="usermod -aG docker USER, and a sudoers rule with NOPASSWD for what bringup runs",
        levels=SOFT,
    ),
    Row(
        "SEC-03",
        "The container gets devices, not the host",
        _privileged,
        reason="--privileged opens every device of the host to the engine; single devices and "
        "IPC_LOCK suffice where RDMA works",
        source="K3 report",
        remedy="knob privileges: devices",
    ),
    Row(
        "SEC-04",
        "No secret lies in the open",
        _secrets,
        reason="files of an inventory, scripts and captures are read by many",
        source="docs/operate.md",
        remedy="move it to a file on the host with mode 0600 and name that file instead",
    ),
    Row(
        "SEC-05",
        "etcd and NATS are not open to all",
        _plain,
        reason="whoever reaches them may register a worker or read traffic",
        source="https://etcd.io/docs/latest/op-guide/security/",
        remedy="use TLS, or keep both in a closed network",
    ),
    Row(
        "SEC-06",
        "No known hole is open",
        _known_faults,
        reason="container toolkits before 1.17.8 let a container take over the host",
        source="https://nvidia.custhelp.com/app/answers/detail/a_id/5659",
        remedy="apt-get install --only-upgrade nvidia-container-toolkit; systemctl restart docker",
        levels=SOFT,
    ),
)
