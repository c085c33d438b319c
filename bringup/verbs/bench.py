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
    from ..bench.table import Bench
    from ..flow.bench_open import Planned


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
    from ..bench.clock import took
    from ..bench.derive import SHORT, named
    from ..bench.table import code_of
    from ..flow.bench import Run
    from ..flow.bench_keep import alone, keep_page, kept
    from ..flow.bench_open import gone_on, plan, prepare
    from ..flow.open import read_inventory
    from ..flow.serve_open import serving_tools
    from ..flow.targets import find_deployment
    from ..report.bench_page import page

    topologies = tuple(one for one in SHORT if one in set(map(named, wanted.topology)))
    known = read_inventory(workspace.inventory)
    chosen = find_deployment(known, deployment)
    with serving_tools(known, workspace, screen.tell, local=local) as tools:
        task, blank = prepare(tools, known, chosen, wanted, accept=accept, pace=pace)
        before = kept(tools, chosen.name)
        bench = gone_on(blank, () if fresh else before, topologies or tuple(SHORT))
        if check:
            return _tell_plan(screen, bench, plan(tools, task, bench))
        with alone(tools, chosen.name):
            bench = Run(tools, task, bench, took(before)).go()
            file = keep_page(tools, bench, page(bench))
    _tell(screen, bench, str(file))
    return code_of(bench)


def _tell_plan(screen: Screen, bench: Bench, planned: tuple[Planned, ...]) -> Exit:
    from ..report.bench import plan_document, plan_view

    screen.show(plan_view(bench, planned))
    screen.emit(plan_document(bench, planned))
    return Exit.WOULD_CHANGE if any(one.starts for one in planned) else Exit.BLOCKED


def _tell(screen: Screen, bench: Bench, file: str) -> None:
    from ..bench.table import document
    from ..report.bench import bench_view

    screen.show(bench_view(bench, file))
    screen.emit({**document(bench), "page": file})


VERBS = (Verb("bench.topologies", bench_topologies),)
