"""The main verb: hosts become what the inventory wants of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from ..core.errors import Exit, gravest
from ..core.verb import Help, Verb
from ..options.fixing import Fixing
from ..options.hosts import DeploymentName, HostSelection, Workspace
from ..options.images import Building, EngineWords
from ..options.serving import Set, Workers
from ..report.screen import Screen
from .common import knob_settings

if TYPE_CHECKING:
    from ..core.outcome import Ended
    from ..flow.types import Order


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What is done before and after: images are built here, deployments started there."""

    build: Annotated[
        bool, Help("first build images that were not built of their folder's inputs yet")
    ] = False
    engine: EngineWords = "docker"
    serve: Annotated[
        bool,
        Help("then start the deployment there, and wait until it serves"),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFiles:
    """Where a plan is kept, and which one is applied; "" for none."""

    save_plan: Annotated[str, Help("with --check: keep the plan in this file, one host only")] = ""
    plan: Annotated[str, Help("apply this saved plan; refused when anything moved since")] = ""


def provision(
    screen: Screen,
    *,
    hosts: HostSelection,
    deployment: DeploymentName = "",
    check: Annotated[bool, Help("show what would change; write nothing")] = False,
    fixing: Fixing,
    around: Around,
    diff: Annotated[bool, Help("show the difference of each file")] = True,
    set: Set = (),  # noqa: A002 - the option's name
    files: PlanFiles,
    workspace: Workspace,
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
    from ..flow.plan import keep

    settings = knob_settings(set, KNOBS)
    order = _order(workspace, hosts, deployment, fixing, files.plan)
    order = replace(order, check=check, set=settings)
    built = _build(screen, order, workspace, around.engine) if around.build else []
    ended = _run(screen, workspace, order, around.engine, building=around.build and check)
    keep(files.save_plan, ended)
    code = gravest([*built, *(one.code for one in ended)])
    _tell(screen, ended, code, check=check, diff=diff)
    return _serve(screen, workspace, order, code, set) if around.serve else code


def _order(
    workspace: Workspace, wanted: HostSelection, deployment: str, fixing: Fixing, plan: str
) -> Order:
    """Return what is to be done, a saved plan approved; it names its host where nobody else does.

    Raises UsageError for words that make no sense, or a plan of another host.
    """
    from ..flow.fix_choice import choice_of
    from ..flow.open import choose, deployments_for, read_inventory
    from ..flow.plan import compare, load, meant
    from ..flow.types import Order

    saved = load(plan)
    if saved and not (wanted.host or wanted.group or wanted.limit):
        wanted = replace(wanted, host=(str(saved["host"]),))
    known = read_inventory(workspace.inventory)
    hosts = choose(known, wanted)
    meant(saved, plan, (one.name for one in hosts))
    served = deployments_for(known, hosts, deployment)
    return Order(known, hosts, served, approve=compare(saved, plan), fix=choice_of(fixing, plan))


def _tell(screen: Screen, ended: tuple[Ended, ...], code: Exit, *, check: bool, diff: bool) -> None:
    from ..report.fix import fixes_view
    from ..report.provision import by_outcome, run_view, summary_view
    from ..report.summary import summary_document

    counts = {word: len(them) for word, them in by_outcome(ended, check=check).items()}
    screen.show(run_view(ended, diff=diff))
    screen.show(fixes_view(ended, check=check))
    screen.fail(*(one.error for one in ended if one.error))
    screen.show(summary_view(ended, check=check))
    screen.emit(summary_document(counts, code))


def _serve(
    screen: Screen, workspace: Workspace, order: Order, code: Exit, settings: tuple[str, ...]
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
            screen, workers=Workers(deployment=name, host=hosts), check=order.check, wait=True,
            set=settings, workspace=workspace,
        )  # fmt: skip
    return code


def _build(screen: Screen, order: Order, workspace: Workspace, engine: str) -> list[Exit]:
    """Build what is not built yet, here; in check mode say what would be."""
    from ..flow.open import images_beside
    from .image import image_build

    images = images_beside(workspace.inventory)
    names = {d.image.name for d in order.deployments.values() if d.in_container}
    ours = [name for name in sorted(names) if images and (images / name / "image.yml").is_file()]
    return [
        image_build(
            screen, name, check=order.check, images=str(images), engine=engine,
            inventory=workspace.inventory, building=Building(),
            workspace=Workspace(state=workspace.state),
        )
        for name in ours
    ]  # fmt: skip


def _run(
    screen: Screen, workspace: Workspace, order: Order, engine: str, *, building: bool
) -> tuple[Ended, ...]:
    """Do the work; machines get each host as it ends, people what was done when they stop it."""
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
            tools_for(order.inventory, workspace, screen.tell) as tools,
            freight_for(
                tools, needed(order), engine_here(engine), images_beside(workspace.inventory),
                registry=order.inventory.registry, login_from=order.inventory.registry_login,
                building=building,
            ) as freight,
        ):  # fmt: skip
            return run(replace(tools, freight=freight), order, ended_on=tell)
    except KeyboardInterrupt:
        screen.show(summary_view(done, check=order.check) if done else "no host was done")
        raise


VERBS = (Verb("provision", provision),)
