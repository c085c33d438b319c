"""Verbs that start and stop a deployment, and tell how it stands."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from ..core.errors import Exit, UsageError, gravest
from ..core.verb import Help, Verb
from ..options.hosts import HostSelection, Workspace
from ..options.serving import Accept, DeploymentWord, Local, Set, Workers
from ..report.screen import Screen
from .common import knob_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.outcome import Ended
    from ..core.reading import Reading
    from ..flow.restart import Turn
    from ..flow.serve import Wish
    from ..flow.targets import Target

Check = Annotated[bool, Help("show what would be done; do nothing")]


def serve_start(
    screen: Screen,
    *,
    workers: Workers,
    check: Check = False,
    recreate: Annotated[bool, Help("start anew what runs with other settings")] = False,
    accept: Accept = (),
    wait: Annotated[bool, Help("then wait until it serves, as ready does")] = False,
    local: Local = False,
    set: Set = (),  # noqa: A002 - the option's name
    workspace: Workspace,
) -> Exit:
    """Start a deployment by its written scripts: services, prefill, decode, then the frontend.

    What runs as written is left alone, what runs with other settings is shown and kept unless
    --recreate is said, what is not ours is never touched. Before a start ports, GPUs, Slurm and
    services are looked at, and an owner in the way is named. Exit codes: 0 done, 1 failed, 2 wrong
    input, 3 not reachable, 4 refused (nothing was started there), 5 check mode, would start.
    """
    from ..flow.serve import start
    from ..flow.serve_open import serving_tools, target_in
    from ..serve.refusals import refuse_unknown

    refuse_unknown(accept)
    target = target_in(workspace, workers.deployment)
    wish = _wish(target, workers, accept=accept, settings=set)
    wish = replace(wish, check=check, recreate=recreate)
    with serving_tools(target.inventory, workspace, screen.tell, local=local) as tools:
        ended = start(tools, wish)
    code = _told(screen, ended)
    if code is not Exit.DONE or check:
        return code
    if wait:
        from .ready import ready

        return ready(screen, deployment=target.deployment.name, local=local, workspace=workspace)
    screen.show(f"\nnext: bringup ready --deployment {target.deployment.name}")
    return code


def serve_stop(
    screen: Screen,
    *,
    workers: Workers,
    services: Annotated[bool, Help("also stop etcd and NATS that bringup runs")] = False,
    check: Check = False,
    local: Local = False,
    workspace: Workspace,
) -> Exit:
    """Stop a deployment, or some hosts or roles of it, in the reverse order of starting.

    A worker takes its keys out of etcd as it ends, so that frontends send it nothing more. A host
    that is named and plays no role any more is cleared of what the deployment left there.
    """
    from ..flow.serve import Wish, stop, stop_strays
    from ..flow.serve_open import serving_tools, target_in

    target = target_in(workspace, workers.deployment)
    members = {one.name for one in target.hosts}
    named = _names(target, workers)
    here = tuple(name for name in named if name in members)
    wish = Wish(
        target.inventory, target.deployment, here, workers.role, check=check, services=services
    )
    with serving_tools(target.inventory, workspace, screen.tell, local=local) as tools:
        ended = stop(tools, wish, target) if here or not named else ()
        ended += tuple(stop_strays(tools, wish, name) for name in named if name not in members)
    return _told(screen, ended)


def serve_restart(
    screen: Screen,
    *,
    workers: Workers,
    wait: Annotated[bool, Help("let it serve again before the next worker's turn")] = True,
    accept: Accept = (),
    local: Local = False,
    set: Set = (),  # noqa: A002 - the option's name
    workspace: Workspace,
) -> Exit:
    """Restart the workers of a role one after the other; the others serve meanwhile.

    Each turn ends when the deployment serves again, proven by a request; the first that does not
    ends the run. A worker that would not be started again is not stopped either. A role of a single
    worker is interrupted, which is said before.
    """
    from ..flow.ready import told
    from ..flow.restart import alone, restart, turns
    from ..flow.serve_open import serving_tools, target_in
    from ..report.serve import left_document, left_view
    from ..serve.refusals import refuse_unknown

    refuse_unknown(accept)
    target = target_in(workspace, workers.deployment)
    wish = _wish(target, workers, accept=accept, settings=set)
    for name in alone(target.deployment.roles, wish):
        screen.show(f"{name} has one worker: nothing is served while it restarts")
    codes, left = [], turns(target, wish)
    with serving_tools(target.inventory, workspace, screen.tell, local=local) as tools:
        for turn in restart(tools, wish, target, told(screen.tell), wait=wait):
            codes.append(_told_turn(screen, turn))
            left = left[1:] if turn.is_good else left
    if left:
        screen.show(left_view(target.deployment.name, left))
    screen.emit(left_document(target.deployment.name, left))
    return gravest(codes)


def _told_turn(screen: Screen, turn: Turn) -> Exit:
    """Show how a worker stopped and started, and how the wait after it ended."""
    from ..report.ready import verdict_view

    code, done = _told(screen, turn.ended), turn.waited
    if done is None:
        return code
    screen.show(verdict_view(done.state, done.verdict, done.seconds, done.words))
    return gravest([code, done.code])


def serve_status(
    screen: Screen,
    *,
    deployment: DeploymentWord = "",
    local: Local = False,
    workspace: Workspace,
) -> Exit:
    """Tell how every worker of a deployment stands: runs, drifted, ended, foreign, not there.

    Exit codes: 0 all run as written, 1 some do not run, 3 some could not be looked at, 5 some run
    with other settings, or an image that its tag has left.
    """
    from ..flow.serve_open import serving_tools, target_in
    from ..flow.status import status
    from ..report.serve import status_document, status_view
    from ..serve.standing import code_of

    target = target_in(workspace, deployment)
    with serving_tools(target.inventory, workspace, screen.tell, local=local) as tools:
        found = status(tools, target)
    screen.show(status_view(found))
    screen.emit(status_document(target.deployment.name, found))
    return code_of(found)


def serve_logs(
    screen: Screen,
    *,
    workers: Workers,
    lines: Annotated[int, Help("how many of the last lines")] = 50,
    follow: Annotated[int, Help("follow one worker's log for this many seconds")] = 0,
    local: Local = False,
    workspace: Workspace,
) -> Exit:
    """Show the last lines of the workers' logs; of one that was stopped, those that were kept."""
    from ..flow.serve_open import serving_tools, target_in
    from ..flow.status import follow as follow_log
    from ..flow.status import logs
    from ..flow.targets import chosen

    if lines < 1 or follow < 0:
        raise UsageError(
            f"cannot show {lines} lines for {follow} seconds", remedy="as --lines 50 --follow 30"
        )
    target = target_in(workspace, workers.deployment)
    wanted = chosen(target.workers, hosts=_names(target, workers), roles=workers.role)
    if follow and len(wanted) != 1:
        raise UsageError(
            f"cannot follow {len(wanted)} logs at once",
            remedy="name one of "
            + ", ".join(f"--host {one.host} --role {one.role}" for one in target.workers),
        )
    with serving_tools(target.inventory, workspace, screen.tell, local=local) as tools:
        if follow:
            follow_log(tools, wanted[0], screen.tell, follow)
            return Exit.DONE
        found = logs(tools, target, wanted, lines)
    return _told_logs(screen, found)


def _told_logs(screen: Screen, found: Mapping[str, Reading[tuple[str, ...]]]) -> Exit:
    """Show the last lines of each worker; tell whether all could be read."""
    from ..core.reading import Known, value_of, why_not
    from ..report.serve import logs_view

    screen.show(logs_view(found))
    for key, reading in sorted(found.items()):
        document = {"schema": "bringup.log/1", "worker": key, "lines": value_of(reading) or ()}
        unread = {} if isinstance(reading, Known) else {"unknown": why_not(reading)}
        screen.emit({**document, **unread})
    read = all(isinstance(reading, Known) for reading in found.values())
    return Exit.DONE if read else Exit.UNREACHABLE


def _wish(
    target: Target, workers: Workers, *, accept: tuple[str, ...], settings: tuple[str, ...]
) -> Wish:
    from ..engines.knobs import KNOBS
    from ..flow.serve import Wish

    return Wish(
        target.inventory, target.deployment, _names(target, workers), workers.role, accept=accept,
        set=knob_settings(settings, KNOBS),
    )  # fmt: skip


def _names(target: Target, workers: Workers) -> tuple[str, ...]:
    """Return the hosts whose workers are meant; none named is all."""
    from ..flow.open import choose

    if not workers.host:
        return ()
    return tuple(host.name for host in choose(target.inventory, HostSelection(host=workers.host)))


def _told(screen: Screen, ended: tuple[Ended, ...]) -> Exit:
    """Show how hosts came out; return the gravest code."""
    from ..report.provision import ended_document
    from ..report.serve import acts_view

    screen.show(acts_view(ended))
    for one in ended:
        screen.emit({**ended_document(one), "schema": "bringup.serve/1"})
    screen.fail(*(one.error for one in ended if one.error))
    return gravest([one.code for one in ended])


VERBS = (
    Verb("serve.start", serve_start),
    Verb("serve.stop", serve_stop),
    Verb("serve.restart", serve_restart),
    Verb("serve.status", serve_status, reads_only=True),
    Verb("serve.logs", serve_logs, reads_only=True),
)
