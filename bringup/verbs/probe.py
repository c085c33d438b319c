"""Look at hosts: what they are, what is wrong, what changed. Nothing on a host is changed."""

from __future__ import annotations

from typing import Annotated

from ..core.errors import Exit, gravest
from ..core.verb import Help, Verb, Without
from ..options.hosts import Hosts, HostSelection, Workspace
from ..options.looking import Look
from ..report.screen import Screen


def probe(
    screen: Screen,
    *,
    hosts: HostSelection,
    wanted: Look,
    workspace: Workspace,
) -> Exit:
    """Tell the true state of hosts: verdict, findings with evidence and remedy, facts.

    One connection and one command a host. Exit codes: 0 ready or degraded, 3 not reachable, 4
    blocked or unknown; with --strict degraded counts as 4 too.
    """
    from ..look import look

    return look(screen, workspace, hosts, wanted)


def probe_capture(
    screen: Screen,
    *,
    hosts: Annotated[HostSelection, Without(("limit", "exclude"))],
    into: Annotated[str, Help("folder for the captures, a file a host")] = "captures",
    about: Annotated[str, Help("what the host is, in words")] = "",
    workspace: Workspace,
) -> Exit:
    """Keep hosts' raw answers with identifiers masked, to share and to judge offline.

    A host that gives no answer is named, and the others are kept.
    """
    from pathlib import Path

    from ..flow.open import opened
    from ..flow.probe import capture

    with opened(workspace, hosts, screen.tell) as (tools, order):
        done = capture(tools, order, Path(into), about=about)
    for file in done.files:
        screen.show(f"wrote {file}; judge it anywhere with: bringup probe --from {file}")
    screen.fail(*done.errors)
    screen.emit({"schema": "bringup.capture/1", "files": done.files})
    return gravest([error.code for error in done.errors])


def probe_pair(
    screen: Screen,
    *,
    from_: Annotated[str, Help("the host that writes")] = "",
    to: Annotated[str, Help("the host that is written to")] = "",
    accept: Annotated[
        tuple[str, ...], Help("load the network in spite of this check (GPU-20, …); repeatable")
    ] = (),
    workspace: Workspace,
) -> Exit:
    """Measure each RDMA rail from one host to another, where nobody works on either (IB-15).

    Needs perftest (ib_write_bw) on both; nothing is changed. A rail passes at 90 % of the rate of
    its ports. Exit codes: 0 all rails work, 3 not reachable, 4 a rail is broken or was not
    measured, or somebody works there.
    """
    from ..core.rules import Verdict, verdict
    from ..flow.open import opened
    from ..flow.pair import measure_pair, pair
    from ..report.pair import pair_document, pair_view, rail_view

    both = HostSelection(host=pair(from_, to))
    with opened(workspace, both, screen.tell) as (tools, order):
        measured = measure_pair(
            tools,
            order,
            (from_, to),
            accept=accept,
            measured_on=lambda one: screen.show(rail_view(one)),
        )
    screen.show(pair_view(measured))
    screen.emit(pair_document(measured))
    well = (Verdict.READY, Verdict.DEGRADED)
    return Exit.DONE if verdict(measured.findings) in well else Exit.BLOCKED


def kinds_learn(
    screen: Screen,
    name: Annotated[str, Help("name of the kind, as b300")],
    *,
    host: Hosts = (),
    into: Annotated[str, Help("write it here; refused when it exists")] = "",
    workspace: Workspace,
) -> Exit:
    """Write the expectations of a kind of host from one that is known to be good."""
    from ..flow.learn import learn

    text = learn(workspace, HostSelection(host=host), name, into, screen.tell)
    screen.show(text if not into else f"wrote {into}")
    screen.emit({"schema": "bringup.kind/1", "name": name, "yaml": text})
    return Exit.DONE


VERBS = (
    Verb("probe", probe, reads_only=True),
    Verb("probe.capture", probe_capture, reads_only=True),
    Verb("probe.pair", probe_pair, reads_only=True),
    Verb("kinds.learn", kinds_learn),
)
