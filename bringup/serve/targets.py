"""From a settled spec to what is waited for, started and stopped: one container or process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..core.host import Deployment, Host
from ..engines.engine import Engine
from ..engines.front import FRONTEND
from ..engines.spec import Spec, text
from ..readiness.stages import Worker


def worker_of(spec: Spec, deployment: Deployment, host: Host, engine: Engine) -> Worker:
    """Return the worker that a spec describes, as far as the inventory alone tells."""
    contained = deployment.in_container
    leader = leader_of(spec.role, deployment, host.name)
    announces = engine.registers and bool(deployment.services.etcd)
    system = spec.ports.get("system_port")
    port = system if engine.registers else spec.ports.get("port")
    leads = leader == host.name
    return replace(
        _worker(spec, host, spec.image_digest or spec.image or deployment.image.name),
        addresses=_addresses(host, text(spec.decisions, "advertise_host")),
        contained=contained,
        log_file=f"{_logs(spec)}.log",
        state_file=f"{spec.folder}/{spec.name}.pid",
        unit=unit_of(spec),
        restarts=text(spec.decisions, "restart") not in ("", "no") or bool(unit_of(spec)),
        registers=announces and leads,
        follows="" if leads else f"{leader}/{spec.role}",
        url=f"http://127.0.0.1:{port}/health" if not announces and leads and port else "",
        metrics=f"http://127.0.0.1:{port}/metrics" if port and leads else "",
    )


def leader_of(role: str, deployment: Deployment, host: str) -> str:
    """Return the host of rank 0 of the worker that a host is part of."""
    workers = (w for one in deployment.roles if one.name == role for w in one.workers)
    return next((worker[0] for worker in workers if host in worker), host)


def front_of(spec: Spec, deployment: Deployment, host: Host) -> Worker:
    """Return what stands in front of the workers, where bringup runs it."""
    port = spec.ports["http_port"]
    path = "live" if spec.engine == FRONTEND else "health"
    return replace(
        _worker(spec, host, spec.image_digest or spec.image or deployment.image.name),
        contained=bool(spec.image),
        log_file=f"{_logs(spec)}.log",
        state_file=f"{spec.folder}/{spec.name}.pid",
        restarts=text(spec.decisions, "restart") not in ("", "no"),
        registers=False,
        is_front=True,
        url=f"http://127.0.0.1:{port}/{path}",
    )


def service_of(spec: Spec, host: Host) -> Worker:
    """Return etcd or NATS, where bringup runs it."""
    return replace(
        _worker(spec, host, spec.image_digest),
        restarts=True,
        registers=False,
        is_service=True,
        pulls=spec.image,
    )


def _worker(spec: Spec, host: Host, image: str) -> Worker:
    """Return what a spec says of any container or process."""
    return Worker(
        host=host.name,
        role=spec.role,
        mode=spec.mode,
        name=spec.name,
        script=spec.script,
        config=spec.config,
        image=image,
        engine=text(spec.decisions, "container_engine"),
        last_log=f"{_logs(spec)}.last.log",
        timeout_s=spec.ready_timeout_s,
    )


def _logs(spec: Spec) -> str:
    return f"{text(spec.decisions, 'log_folder').rstrip('/')}/{spec.name}"


def unit_of(spec: Spec) -> str:
    """Return the systemd unit that runs a script, "" where none is wanted."""
    return spec.unit_name if spec.unit else ""


def _addresses(host: Host, advertised: str) -> tuple[str, ...]:
    every: Iterable[str] = (advertised, host.reached_at, host.login.address, host.advertise)
    return tuple(dict.fromkeys(address for address in every if address))
