"""Verbs that tell how far a deployment has come up, and what stands in its way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ..core.errors import Exit, UsageError
from ..core.verb import Help, Verb
from ..options.hosts import Hosts, HostSelection, Workspace
from ..options.serving import Local
from ..report.screen import Screen

if TYPE_CHECKING:
    from ..flow.ready import Show, Waited
    from ..readiness.diagnosis import Diagnosis
    from ..readiness.verdict import Verdict
    from ..readiness.watch import State

DeploymentWord = Annotated[str, Help("deployment to wait for; may be left out where there is one")]


def ready(
    screen: Screen,
    *,
    deployment: DeploymentWord = "",
    now: Annotated[bool, Help("look once and say how far it is; do not wait")] = False,
    local: Local = False,
    every: Annotated[float, Help("seconds between two looks")] = 2.0,
    answer_within: Annotated[float, Help("most seconds for one chat completion")] = 120.0,
    budget: Annotated[tuple[str, ...], Help("STAGE=SECONDS, as listed=300; repeatable")] = (),
    workspace: Workspace,
) -> Exit:
    """Wait until a deployment serves, and prove it by one request seen in both workers.

    Goes from etcd over NATS, containers, loading, registration and the model list to an answer;
    says which stage each worker has reached, and how long it takes yet by earlier starts. Ends at
    once where a cause is certain, with what to do. All is asked through the hosts' SSH connections.
    Exit codes: 0 serves, 1 will not (or, with --now, does not yet), 2 wrong input, 3 not reachable.
    """
    from ..flow.ready import Wait, budgets
    from ..flow.serve_open import serving_tools, target_in

    target = target_in(workspace, deployment)
    with serving_tools(target.inventory, workspace, screen.tell, local=local) as tools:
        wait = Wait(
            tools, target, _live(screen), every, answer_within, once=now, seconds=budgets(budget)
        )
        ended = wait.run()
    _tell(screen, ended)
    return ended.code


def _live(screen: Screen) -> Show:
    """Return what shows each look: the state as it stands on a terminal, what changed elsewhere."""
    from ..flow.ready import told
    from ..report.ready import state_view

    tell = told(screen.tell)

    def show(seen: State, judged: Verdict) -> None:
        tell(seen, judged)
        screen.watch(state_view(seen, judged))

    return show


def _tell(screen: Screen, ended: Waited) -> None:
    from ..report.ready import ready_document, verdict_view

    name, words = ended.target.deployment.name, ended.words
    screen.show(verdict_view(ended.state, ended.verdict, ended.seconds, words))
    if not ended.state.is_started:
        screen.show(f"\nnothing of it is started: bringup serve.start --deployment {name}")
    screen.emit(ready_document(name, ended.state, ended.verdict, ended.seconds, words))


def diagnose(
    screen: Screen,
    *,
    log: Annotated[tuple[str, ...], Help("log file, - for standard input; repeatable")] = (),
    engine: Annotated[str, Help("leave out causes of other engines, as dynamo.sglang")] = "",
    host: Hosts = (),
    deployment: Annotated[str, Help("its workers' logs, with what their hosts' checks say")] = "",
    local: Local = False,
    workspace: Workspace,
) -> Exit:
    """Name what a log of an engine, frontend, container or driver tells: cause, why, what to do.

    Works on any log: causes come from a catalogue of known failures, each with its source. With
    --deployment its workers are looked at as they stand: state, log and their hosts' checks; then
    discovery, the frontend, and one short request where the model is listed. Exit codes: 0 a known
    cause was found, or all is well; 1 neither; 2 wrong input; 3 not reachable.
    """
    from ..flow.diagnose import diagnose_text, read_text
    from ..readiness.failures import Case
    from ..report.diagnose import diagnosis_block, diagnosis_document

    if not (log or host or deployment):
        raise UsageError(
            "cannot diagnose nothing", remedy="give --log FILE, --log - for a pipe, or --host"
        )
    found = [diagnose_text(source, read_text(source), Case(engine)) for source in log]
    if host or deployment:
        found += _diagnosed(screen, host, deployment, workspace, local=local)
    for one in found:
        screen.show(diagnosis_block(one, with_source=len(found) > 1))
        screen.emit(diagnosis_document(one))
    is_told = any(one.matches for one in found) or all(one.is_well for one in found)
    return Exit.DONE if is_told else Exit.FAILED


def _diagnosed(
    screen: Screen, host: tuple[str, ...], deployment: str, workspace: Workspace, *, local: bool
) -> list[Diagnosis]:
    """Look at the workers of a deployment, or at those of its hosts that are named."""
    from ..flow.diagnose_hosts import diagnose_hosts
    from ..flow.open import choose
    from ..flow.serve import Wish
    from ..flow.serve_open import serving_tools, target_in

    target = target_in(workspace, deployment)
    known = target.inventory
    meant = choose(known, HostSelection(host=host)) if host else ()
    wish = Wish(known, target.deployment, tuple(one.name for one in meant))
    with serving_tools(known, workspace, screen.tell, local=local) as tools:
        return diagnose_hosts(tools, wish, target)


VERBS = (
    Verb("ready", ready, reads_only=True),
    Verb("diagnose", diagnose, reads_only=True),
)
