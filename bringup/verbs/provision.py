"""The main verb: hosts become what the inventory wants of them."""

from __future__ import annotations

from typing import Annotated

from ..core.errors import Exit, gravest
from ..core.verb import Help, Verb
from ..report_screen import Screen
from .common import (
    AcceptNew,
    DeploymentName,
    Exclude,
    Folder,
    Groups,
    Hosts,
    KnownHosts,
    Limit,
    Set,
    State,
    Stats,
    knob_settings,
)


def provision(
    screen: Screen,
    *,
    host: Hosts = (),
    group: Groups = (),
    limit: Limit = "",
    exclude: Exclude = (),
    deployment: DeploymentName = "",
    check: Annotated[bool, Help("show what would change; write nothing")] = False,
    fix: Annotated[bool, Help("mend what is safe to mend first, then look again")] = False,
    fix_only: Annotated[
        tuple[str, ...], Help("mend these findings only, as CTR-01,FAB-03; repeatable")
    ] = (),
    fix_level: Annotated[
        str, Help("safe; service: may restart a service; reboot: also print what needs one")
    ] = "safe",
    diff: Annotated[bool, Help("show the difference of each file")] = True,
    set: Set = (),  # noqa: A002 - the option's name
    save_plan: Annotated[str, Help("with --check: keep the plan in this file, one host only")] = "",
    plan: Annotated[str, Help("apply this saved plan; refused when anything moved since")] = "",
    inventory: Folder = "inventory",
    state: State = "",
    known_hosts: KnownHosts = "",
    accept_new: AcceptNew = False,
    stats: Stats = False,
) -> Exit:
    """Bring hosts to what the inventory wants of them.

    Looks at the hosts and their deployment peers, decides fallbacks with reasons, shows the plan
    and the difference of every file, changes only what differs, looks again, and leaves a receipt.
    With --fix, findings with a safe remedy are mended first, and what needs a person is printed.
    A second run finds nothing to change. Exit codes: 0 done, 1 failed, 2 wrong input, 3 not
    reachable, 4 blocked (nothing was changed), 5 check mode and something would change.
    """
    from ..engines.knobs import KNOBS
    from ..flow import provision as run
    from ..flow_fix_choice import choice_of
    from ..flow_open import Choice, choose, deployments_for, read_inventory, tools_for
    from ..flow_plan import compare, keep
    from ..flow_types import Order
    from ..report_fix import fixes_view
    from ..report_provision import ended_document, run_view, summary_view
    from ..report_stats import stats_document, stats_view

    settings = knob_settings(set, KNOBS)
    choice = Choice(inventory, host, group, limit, exclude, known_hosts, accept_new, state)
    known = read_inventory(inventory)
    hosts = choose(known, choice)
    served = deployments_for(known, hosts, deployment)
    order = Order(
        known, hosts, served, check=check, set=settings, approve=compare(plan),
        fix=choice_of(fix, fix_only, fix_level, plan),
    )  # fmt: skip
    with tools_for(known, choice, screen.tell) as tools:
        ended = run(tools, order)
        traffic = tools.fleet.traffic()
    keep(save_plan, ended)
    screen.show(run_view(ended, diff=diff))
    screen.show(fixes_view(ended, check=check))
    for one in ended:
        screen.emit(ended_document(one))
        if one.error:
            screen.fail(one.error)
    screen.show(summary_view(ended, check=check))
    if stats:
        screen.show(stats_view(traffic))
        screen.emit(stats_document(traffic))
    return gravest([one.code for one in ended])


VERBS = (Verb("provision", provision),)
