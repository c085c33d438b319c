"""Restart a role worker by worker, so that the others go on serving meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ..core.errors import Exit, UsageError
from ..core.host import Role
from ..core.outcome import Ended
from ..readiness.verdict import Ready
from .ready import Show, Wait, Waited
from .serve import Wish, start, stop
from .targets import Target, chosen
from .types import Tools


@dataclass(frozen=True, slots=True)
class Turn:
    """One worker's restart: its hosts, how stop and start came out, and the wait after it."""

    hosts: tuple[str, ...]
    role: str
    ended: tuple[Ended, ...]
    waited: Waited | None = None

    @property
    def is_good(self) -> bool:
        acted = all(one.code is Exit.DONE for one in self.ended)
        return acted and (self.waited is None or isinstance(self.waited.verdict, Ready))


def restart(
    tools: Tools, wish: Wish, target: Target, show: Show, *, wait: bool = True
) -> Iterator[Turn]:
    """Yield each worker's restart as it is done; ends after the first that does not come up.

    All ranks of a worker stop and start together. With `wait`, the next worker's turn comes when
    the whole deployment serves again.
    """
    for role, hosts in turns(target, wish):
        one = replace(wish, hosts=hosts, roles=(role,), recreate=True, for_good=False)
        ended = _refused(tools, one) or _turned(tools, one, target)
        waited = None
        if wait and all(came.code is Exit.DONE for came in ended):
            waited = Wait(tools, target, show).run()
        turn = Turn(hosts, role, ended, waited)
        yield turn
        if not turn.is_good:
            return


def _refused(tools: Tools, one: Wish) -> tuple[Ended, ...]:
    """Return what would refuse to start a worker again: it is not stopped then."""
    foreseen = start(tools, replace(one, check=True))
    return tuple(end for end in foreseen if end.code not in (Exit.DONE, Exit.WOULD_CHANGE))


def _turned(tools: Tools, one: Wish, target: Target) -> tuple[Ended, ...]:
    """Stop and start; what did not stop is not started."""
    stopped = stop(tools, one, target)
    if any(end.code is not Exit.DONE for end in stopped):
        return stopped
    return (*stopped, *start(tools, one))


def turns(target: Target, wish: Wish) -> list[tuple[str, tuple[str, ...]]]:
    """Return the role and hosts of every worker that is restarted, in the order of starting.

    Raises UsageError where nothing of the deployment was chosen.
    """
    wanted = chosen(target.workers, hosts=wish.hosts, roles=wish.roles)
    keys = {(worker.role, worker.host) for worker in wanted}
    found = [
        (role.name, worker)
        for role in target.deployment.roles
        for worker in role.workers
        if any((role.name, host) in keys for host in worker)
    ]
    found += [
        (worker.role, (worker.host,))
        for worker in wanted
        if worker.is_front or (worker.is_service and worker.role in wish.roles)
    ]
    if not found:
        raise UsageError("cannot restart anything: no worker is on these hosts in these roles")
    return found


def alone(roles: Iterable[Role], wish: Wish) -> tuple[str, ...]:
    """Return the chosen roles of a single worker: nobody serves while they restart."""
    return tuple(
        role.name
        for role in roles
        if len(role.workers) == 1 and (not wish.roles or role.name in wish.roles)
    )
