"""The main verb: hosts become what the inventory wants of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ..core.errors import Exit, gravest
from ..core.verb import Help, Verb
from ..report.screen import Screen
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
    knob_settings,
)
from .image_options import EngineWords

if TYPE_CHECKING:
    from ..core.outcome import Ended
    from ..flow.open import Choice
    from ..flow.types import Order


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
    build: Annotated[
        bool, Help("first build images that were not built of their folder's inputs yet")
    ] = False,
    engine: EngineWords = "docker",
    serve: Annotated[
        bool, Help("then start the deployment there, and wait until it serves")
    ] = False,
    diff: Annotated[bool, Help("show the difference of each file")] = True,
    set: Set = (),  # noqa: A002 - the option's name
    save_plan: Annotated[str, Help("with --check: keep the plan in this file, one host only")] = "",
    plan: Annotated[str, Help("apply this saved plan; refused when anything moved since")] = "",
    inventory: Folder = "inventory",
    state: State = "",
    known_hosts: KnownHosts = "",
    accept_new: AcceptNew = False,
) -> Exit:
    """Bring hosts to what the inventory wants of them.

    Looks at the hosts and their deployment peers, decides fallbacks with reasons, shows the plan
    and the difference of every file, changes only what differs, looks again, and leaves a receipt.
    With --fix, findings with a safe remedy are mended first, and what needs a person is printed.
    A host that lacks the image that its deployment's folder in images/ says is brought it, by ID.
    With --serve, what was written is started, and one request has to be answered by its workers.
    A second run finds nothing to change. Exit codes: 0 done, 1 failed, 2 wrong input, 3 not
    reachable, 4 blocked (nothing was changed), 5 check mode and something would change.
    """
    from ..engines.knobs import KNOBS
    from ..flow.fix_choice import choice_of
    from ..flow.open import Choice, choose, deployments_for, read_inventory
    from ..flow.plan import compare, keep, load, meant
    from ..flow.types import Order
    from ..report.fix import fixes_view
    from ..report.provision import by_outcome, run_view, summary_view
    from ..report.summary import summary_document

    settings = knob_settings(set, KNOBS)
    saved = load(plan)
    named = host or (() if group or limit or not saved else (str(saved["host"]),))
    choice = Choice(inventory, named, group, limit, exclude, known_hosts, accept_new, state)
    known = read_inventory(inventory)
    hosts = choose(known, choice)
    meant(saved, plan, (one.name for one in hosts))
    served = deployments_for(known, hosts, deployment)
    order = Order(
        known, hosts, served, check=check, set=settings, approve=compare(saved, plan),
        fix=choice_of(fix, fix_only, fix_level, plan),
    )  # fmt: skip
    built = _build(screen, order, choice, engine) if build else []
    ended = _run(screen, choice, order, engine, building=build and check)
    keep(save_plan, ended)
    code = gravest([*built, *(one.code for one in ended)])
    counts = {word: len(them) for word, them in by_outcome(ended, check=check).items()}
    screen.show(run_view(ended, diff=diff))
    screen.show(fixes_view(ended, check=check))
    screen.fail(*(one.error for one in ended if one.error))
    screen.show(summary_view(ended, check=check))
    screen.emit(summary_document(counts, code))
    return _serve(screen, choice, order, code, set) if serve else code


def _serve(
    screen: Screen, choice: Choice, order: Order, code: Exit, settings: tuple[str, ...]
) -> Exit:
    """Start what the hosts serve, each deployment until it answers; the first that fails ends it.

    What is not written yet cannot be looked at, so that check mode names the command instead.
    """
    from .serve import serve_start

    for name, hosts in order.served().items():
        if code is not Exit.DONE:
            screen.show(
                f"\nnot started: {name}; after that: bringup serve.start --deployment {name}"
            )
            continue
        code = serve_start(
            screen, deployment=name, host=hosts, check=order.check, wait=True, set=settings,
            inventory=choice.inventory, state=choice.state, known_hosts=choice.known_hosts,
            accept_new=choice.accept_new,
        )  # fmt: skip
    return code


def _build(screen: Screen, order: Order, choice: Choice, engine: str) -> list[Exit]:
    """Build what is not built yet, here; in check mode say what would be."""
    from ..flow.open import images_beside
    from .image import image_build

    images = images_beside(choice.inventory)
    names = {d.image.name for d in order.deployments.values() if d.in_container}
    ours = [name for name in sorted(names) if images and (images / name / "image.yml").is_file()]
    return [
        image_build(
            screen, name, check=order.check, images=str(images), engine=engine,
            inventory=choice.inventory, state=choice.state,
        )
        for name in ours
    ]  # fmt: skip


def _run(
    screen: Screen, choice: Choice, order: Order, engine: str, *, building: bool
) -> tuple[Ended, ...]:
    """Do the work; machines get each host as it ends, people what was done when they stop it."""
    from dataclasses import replace

    from ..flow.freight import freight_for
    from ..flow.image_open import engine_here
    from ..flow.open import images_beside, tools_for
    from ..flow.provision import needed
    from ..flow.provision import provision as run
    from ..report.provision import ended_document, summary_view

    done: list[Ended] = []

    def tell(one: Ended) -> None:
        done.append(one)
        screen.emit(lambda: ended_document(one))

    try:
        with (
            tools_for(order.inventory, choice, screen.tell) as tools,
            freight_for(
                tools, needed(order), engine_here(engine), images_beside(choice.inventory),
                registry=order.inventory.registry, building=building,
            ) as freight,
        ):  # fmt: skip
            return run(replace(tools, freight=freight), order, ended_on=tell)
    except KeyboardInterrupt:
        screen.show(summary_view(done, check=order.check) if done else "no host was done")
        raise


VERBS = (Verb("provision", provision),)
