"""A whole case as a world to judge: facts, kind of host, and what is to be served."""

from __future__ import annotations

from collections.abc import Mapping

from ...core.facts import Facts
from ...core.host import Host, Kind, Login
from ...core.kinds import kind_for
from ...core.reading import Known
from ...core.rules import World
from ..gpu import Gpus
from ..identity import Identity
from . import facts_of
from .asked import Output
from .target import deployment_of


def outputs_of(facts: Mapping[str, object]) -> dict[str, Output]:
    """Return outputs by command: a text alone stands for exit code 0."""
    return {line: _output(told) for line, told in facts.items()}


def _output(told: object) -> Output:
    if isinstance(told, str):
        return Output(0, told)
    if not isinstance(told, Mapping):
        return Output(0, "" if told is None else str(told))
    code = told.get("rc", 0)
    return Output(
        code if isinstance(code, int) else 1,
        str(told.get("stdout") or ""),
        str(told.get("stderr") or ""),
    )


def world_of(
    facts: Mapping[str, object],
    target: Mapping[str, object] | None,
    kinds: Mapping[str, Kind],
    host: Host | None = None,
) -> World:
    """Return the world of a case, `facts` being what each command gave (`rc`, `stdout`, `stderr`).

    Without a `host`, one is made of what the facts say.
    """
    read = facts_of(outputs_of(facts))
    where = host or _host(read)
    gpus = read[Gpus]
    kind = kind_for(kinds, gpus.value.gpus if isinstance(gpus, Known) else (), where)
    deployment = deployment_of(target, where.name, read) if target else None
    role = deployment.role_of(where.name) if deployment else None
    return World(where, read, kind, deployment, role)


def _host(facts: Facts) -> Host:
    identity = facts[Identity]
    name = identity.value.hostname if isinstance(identity, Known) else ""
    return Host(name or "host", Login(name or "host"))
