"""Topologies measured against each other on one host."""

from __future__ import annotations

from typing import Annotated

from ..core.errors import Exit
from ..core.verb import Help, Verb
from ..report.screen import Screen
from .common import AcceptNew, Folder, KnownHosts, State
from .serve import Accept, DeploymentWord, Local


def bench_topologies(
    screen: Screen,
    *,
    deployment: DeploymentWord = "",
    host: Annotated[str, Help("the host to measure on, where the deployment has several")] = "",
    gpus: Annotated[str, Help("GPUs to use, as 0,1; else the deployment's, else all")] = "",
    topology: Annotated[
        tuple[str, ...], Help("dp, tp or 1p1d; repeatable; left out: all three")
    ] = (),
    traffic: Annotated[
        tuple[str, ...],
        Help("decode-heavy (512 in, 2048 out), prefill-heavy (7500 in, 200 out), or 4000x500"),
    ] = (),
    prompts: Annotated[int, Help("requests of each traffic; 0 keeps its own, 128")] = 0,
    check: Annotated[bool, Help("show what would be started and measured; do nothing")] = False,
    fresh: Annotated[bool, Help("measure all anew, whatever an earlier run has kept")] = False,
    accept: Accept = (),
    within: Annotated[int, Help("most seconds for one traffic")] = 3600,
    every: Annotated[float, Help("seconds between two looks at a start")] = 2.0,
    local: Local = False,
    inventory: Folder = "inventory",
    state: State = "",
    known_hosts: KnownHosts = "",
    accept_new: AcceptNew = False,
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
    from ..bench.table import code_of, document
    from ..flow.bench import Run
    from ..flow.bench_keep import alone, keep_page, kept
    from ..flow.bench_open import Asked, gone_on, plan, prepare
    from ..flow.open import Choice, read_inventory
    from ..flow.serve_open import serving_tools
    from ..flow.targets import find_deployment
    from ..report.bench import bench_view, plan_document, plan_view
    from ..report.bench_page import page

    wanted = tuple(one for one in SHORT if one in set(map(named, topology))) or tuple(SHORT)
    asked = Asked(host, gpus, traffic, prompts, accept, within, every)
    choice = Choice(inventory, known_hosts=known_hosts, accept_new=accept_new, state=state)
    known = read_inventory(inventory)
    chosen = find_deployment(known, deployment)
    with serving_tools(known, choice, screen.tell, local=local) as tools:
        task, blank = prepare(tools, known, chosen, asked)
        before = kept(tools, chosen.name)
        bench = gone_on(blank, () if fresh else before, wanted)
        if check:
            planned = plan(tools, task, bench)
            screen.show(plan_view(bench, planned))
            screen.emit(plan_document(bench, planned))
            return Exit.WOULD_CHANGE if any(p.starts for p in planned) else Exit.BLOCKED
        with alone(tools, chosen.name):
            bench = Run(tools, task, bench, took(before)).go()
            file = keep_page(tools, bench, page(bench))
    screen.show(bench_view(bench, str(file)))
    screen.emit({**document(bench), "page": str(file)})
    return code_of(bench)


VERBS = (Verb("bench.topologies", bench_topologies),)
