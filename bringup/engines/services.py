"""etcd and NATS as containers, where a deployment says that bringup runs them itself.

One member each, for hosts that have no such service yet. Their data stays on the host.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from urllib.parse import urlsplit

from ..core.errors import UsageError
from ..core.host import Deployment, Host, Mode, Role
from ..core.knobs import Decision
from .engine import CommandLine, Settled
from .spec import CONTAINER, Spec, named, text

ETCD, NATS = "etcd", "nats"
SERVICES = (ETCD, NATS)
DATA = "/var/lib/bringup"
RESTART = "unless-stopped"


def digest_of(image: str) -> str:
    """Return the digest in an image's reference, "" where it has none."""
    return image.rpartition("@")[2] if "sha256:" in image else ""


def role_of(service: str, host: str) -> Role:
    """Return the role that a service plays for settling knobs and for its script's name."""
    return Role(service, Mode.AGGREGATED, ((host,),))


def specs(deployment: Deployment, host: Host, decisions: Settled) -> Iterator[Spec]:
    """Yield the specs of the services that bringup runs on a host."""
    shared = deployment.services
    if shared.host != host.name:
        return
    kept = lasting(decisions)
    if shared.etcd_image:
        yield _spec(deployment, host, kept, shared.etcd_image, _etcd(shared.etcd, deployment))
    if shared.nats_image:
        yield _spec(deployment, host, kept, shared.nats_image, _nats(shared.nats, deployment))


def lasting(settled: Settled) -> Settled:
    """Return decisions for what everything needs: it comes back with its host."""
    because = "services come back with their host"
    return {**settled, "restart": Decision("restart", RESTART, "no", "bringup", because)}


def _spec(
    deployment: Deployment, host: Host, settled: Settled, image: str, line: CommandLine
) -> Spec:
    name = ETCD if line.argv[0] == "etcd" else NATS
    spec = Spec(
        host=host.name, deployment=deployment.name, role=name, mode=Mode.AGGREGATED, engine=name,
        script_name=f"serve_{name}.sh", template=CONTAINER,
        folder=f"{text(settled, 'serve_folder').rstrip('/')}/{deployment.name}",
        name=f"{deployment.name}-{name}", image=image, image_digest=digest_of(image),
        command=line, ready_timeout_s=60, ports={"port": _port(deployment, name)},
        decisions=settled, has_gpus=False, data=_data(deployment, name),
    )  # fmt: skip
    return named(spec)


def _data(deployment: Deployment, name: str) -> str:
    return f"{DATA}/{deployment.name}/{name}"


def _port(deployment: Deployment, name: str) -> int:
    url = deployment.services.etcd[0] if name == ETCD else deployment.services.nats
    return urlsplit(url).port or {ETCD: 2379, NATS: 4222}[name]


def _listen(url: str) -> str:
    """Return the address to listen on: that of the URL, everywhere where it is a name."""
    host = urlsplit(url).hostname or ""
    try:
        return f"[{host}]" if ip_address(host).version == 6 else host
    except ValueError:
        return "0.0.0.0"  # noqa: S104 - workers of other hosts come in


def _etcd(endpoints: tuple[str, ...], deployment: Deployment) -> CommandLine:
    """A single member listens to peers on loopback only: there are none."""
    if len(endpoints) != 1:
        raise UsageError(
            f"cannot run etcd for {deployment.name}: it names {len(endpoints)} endpoints, and "
            "bringup runs a single member",
            remedy="name one endpoint in services.etcd, or take etcd_image away",
        )
    url = endpoints[0]
    port = _port(deployment, ETCD)
    peer = f"http://127.0.0.1:{port + 1}"
    words = (
        "etcd", "--name", "bringup", "--data-dir", _data(deployment, ETCD),
        "--listen-client-urls", f"http://{_listen(url)}:{port}",
        "--advertise-client-urls", url,
        "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
        "--initial-cluster", f"bringup={peer}",
    )  # fmt: skip
    return CommandLine(words, program=1)


def _nats(url: str, deployment: Deployment) -> CommandLine:
    words = (
        "nats-server", "-a", _listen(url), "-p", str(_port(deployment, NATS)),
        "-js", "-sd", _data(deployment, NATS),
    )  # fmt: skip
    return CommandLine(words, program=1)


__all__ = ["ETCD", "NATS", "SERVICES", "digest_of", "role_of", "specs"]
