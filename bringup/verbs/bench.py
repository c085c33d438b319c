"""Topologies measured against each other on one host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ..core.errors import Exit
from ..core.verb import Help, Verb
from ..options.hosts import Workspace
from ..options.measuring import Comparison, Pace
from ..options.serving import Accept, DeploymentWord, Local
from ..report.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..bench.table import Bench
    from ..flow.bench_open import PlannedTopology
    from ..flow.bench_task import Task
    from ..flow.types import Tools


def bench_topologies(
    screen: Screen,
    *,
    deployment: DeploymentWord = "",
    wanted: Comparison,
    check: Annotated[bool, Help("show what would be started and measured; do nothing")] = False,
    fresh: Annotated[bool, Help("measure all anew, whatever an earlier run has kept")] = False,
    accept: Accept = (),
    pace: Pace,
    local: Local = False,
    workspace: Workspace,
) -> Exit:
    """Start copies, tensor parallel and a pair in turn on one host, and measure each.

    Derives the three from one deployment of engine vllm, runs `vllm bench serve` beside each, and
    writes one table and a page with plots. What fails to start is a row with its cause; what was
    started is stopped, and foreign processes and containers are left alone. Rows are kept as they
    come: after Ctrl-C the same command goes on. Exit codes: 0 all measured, 1 some did not start
    or gave no result, 2 wrong input, 3 not reachable, 4 some refused, nothing was started there,
    5 check mode, would start.
    """
    from ..bench.derive import chosen
    from ..flow.bench_keep import kept
    from ..flow.bench_open import gone_on, plan, prepare
    from ..flow.open import read_inventory
    from ..flow.serve_open import serving_tools
    from ..flow.targets import find_deployment

    topologies = chosen(wanted.topology)
    known = read_inventory(workspace.inventory)
    subject = find_deployment(known, deployment)
    with serving_tools(known, workspace, screen.tell, local=local) as tools:
        task, blank = prepare(tools, known, subject, wanted, accept=accept, pace=pace)
        before = kept(tools, subject.name)
        bench = gone_on(blank, () if fresh else before, topologies)
        if check:
            return _tell_plan(screen, bench, plan(tools, task, bench))
        bench, file = _measured(tools, task, bench, before)
    return _tell(screen, bench, file)


def _measured(tools: Tools, task: Task, bench: Bench, before: Iterable[Bench]) -> tuple[Bench, str]:
    """Measure what has no row yet, and write the page; nobody else measures it meanwhile."""
    from ..bench.clock import took
    from ..flow.bench import BenchRun
    from ..flow.bench_keep import alone, keep_page
    from ..report.bench_page import page

    with alone(tools, bench.deployment):
        bench = BenchRun(tools, task, bench, took(before)).go()
        return bench, str(keep_page(tools, bench, page(bench)))


def _tell_plan(screen: Screen, bench: Bench, planned: tuple[PlannedTopology, ...]) -> Exit:
    from ..report.bench import plan_document, plan_view

    screen.show(plan_view(bench, planned))
    screen.emit(plan_document(bench, planned))
    return Exit.WOULD_CHANGE if any(one.starts for one in planned) else Exit.BLOCKED


def _tell(screen: Screen, bench: Bench, file: str) -> Exit:
    from ..bench.table import code_of, document
    from ..report.bench import bench_view

    screen.show(bench_view(bench, file))
    screen.emit({**document(bench), "page": file})
    return code_of(bench)


VERBS = (Verb("bench.topologies", bench_topologies),)
