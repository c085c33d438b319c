"""The tokenizer bundle: make, check, push, give to Kubernetes, and tell why a list is empty."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..core.errors import Exit, UsageError, gravest
from ..core.verb import Help, Verb
from ..options.bundle import DiscoveryPlace, FrontendSpot
from ..options.hosts import BareWorkspace
from ..report.screen import Screen

if TYPE_CHECKING:
    from ..bundle.kubernetes import Volume
    from ..bundle.reports import Placed
    from ..core.rules import Finding
    from ..edge.bundle_files import Opened

Bundle = Annotated[str, Help("the bundle, a .tgz")]
Dynamo = Annotated[str, Help("version of the Dynamo that will read it, as 1.3.0.post1")]
DeploymentWord = Annotated[str, Help("deployment of the inventory that says model and services")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidVolume:
    """Where a pod gets the bundle from: one of a claim, a folder of each node, an image."""

    claim: Annotated[str, Help("the unpacked bundle is on this PersistentVolumeClaim")] = ""
    sub_path: Annotated[str, Help("folder of the bundle on the claim")] = ""
    node_folder: Annotated[str, Help("the unpacked bundle is in this folder of each node")] = ""
    init_image: Annotated[str, Help("unpack from ConfigMaps by this image at start")] = ""


def bundle_make(
    screen: Screen,
    source: Annotated[str, Help("model folder: PATH here, or HOST:PATH")],
    *,
    out: Annotated[str, Help("write the bundle here")] = "bundle.tgz",
    dynamo: Dynamo = "",
    processor: Annotated[str, Help("the frontend's --dyn-chat-processor")] = "dynamo",
    revision: Annotated[str, Help("the model's revision, where the folder does not tell")] = "",
    accept: Annotated[tuple[str, ...], Help("make it in spite of this finding; repeatable")] = (),
    workspace: BareWorkspace,
) -> Exit:
    """Make a bundle of all files in a model folder that are no weights.

    The same folder gives the same bytes on any machine. A folder that the named Dynamo could not
    serve is refused, with what to do; without --dynamo, one that no known release could serve.
    """
    from ..bundle.releases import refuse_no_version
    from ..flow.bundle import make
    from ..flow.bundle_open import opened, read_source, spot
    from ..report.bundle import made_document, made_view

    refuse_no_version(dynamo)
    with opened(workspace, screen.tell, needed=bool(spot(source).hosts)) as (known, tools):
        found = read_source(source, known, tools)
    report = make(
        found, Path(out), dynamo=dynamo, processor=processor, revision=revision, accept=accept
    )
    screen.show(made_view(report))
    screen.emit(made_document(report))
    return Exit.DONE


def bundle_check(
    screen: Screen,
    bundle: Bundle,
    *,
    folder: Annotated[tuple[str, ...], Help("compare with PATH here, or HOST:PATH")] = (),
    deployment: DeploymentWord = "",
    discovery: DiscoveryPlace,
    name: Annotated[str, Help("served model name, where cards of several are there")] = "",
    load: Annotated[bool, Help("load the tokenizer and send a sample there and back")] = False,
    workspace: BareWorkspace,
) -> Exit:
    """Compare a bundle with folders and with what workers announce, before anything restarts."""
    from ..flow.bundle import check_cards, check_folder
    from ..flow.bundle_open import (
        announcer,
        deployment_of,
        one_site,
        opened,
        spot,
        way_to_services,
    )
    from ..report.bundle import check_document, check_view

    whole = _opened(bundle, load=load, screen=screen)
    needed = bool(deployment) or any(spot(word).hosts for word in folder)
    with opened(workspace, screen.tell, needed=needed) as (known, tools):
        sites = [(one_site(known, tools, spot(word).hosts), spot(word).path) for word in folder]
        reports = [check_folder(whole, site, path) for site, path in sites]
        if deployment or discovery.is_said:
            served = deployment_of(known, deployment)
            model = name or (served.model.served_name if served else "")
            way = way_to_services(tools, served)
            cards = announcer(discovery, served, way)().cards
            reports.append(check_cards(whole, cards, name=model))
    for report in reports:
        screen.show(check_view(report))
        screen.emit(check_document(report))
    return Exit.DONE if all(report.is_good for report in reports) else Exit.FAILED


def bundle_push(
    screen: Screen,
    bundle: Bundle,
    *,
    to: Annotated[tuple[str, ...], Help("folder: HOSTS:PATH (b300-[01-10]:/p) or PATH here")],
    check: Annotated[bool, Help("show what would change; write nothing")] = False,
    replace: Annotated[bool, Help("take the place of files that no bundle put there")] = False,
    dynamo: Dynamo = "",
    workspace: BareWorkspace,
) -> Exit:
    """Place a bundle in folders: frontends' hosts, or one that mounts a shared folder.

    Unpacked beside, verified, swapped in by rename; an unchanged folder costs one round trip.
    Folders with weights in them are never touched.
    """
    from ..bundle.releases import release_of
    from ..bundle.reports import PushOutcome
    from ..bundle.symptoms import restarting
    from ..flow.bundle_open import opened, spot, targets
    from ..flow.bundle_push import push
    from ..report.bundle import push_document, push_view

    whole = _opened(bundle, load=False, screen=screen)
    needed = any(spot(word).hosts for word in to)
    with opened(workspace, screen.tell, needed=needed) as (known, tools):
        rows = push(
            whole, targets(to, known, tools), check=check, replace=replace, listen=screen.tell
        )
    changed = any(row.outcome is PushOutcome.CHANGED for row in rows)
    screen.show(push_view(rows, after=f"then {restarting(release_of(dynamo))}" if changed else ""))
    for row in rows:
        screen.emit(push_document(row))
    screen.fail(*(row.error for row in rows if row.error))
    return gravest([_code(row) for row in rows])


def bundle_kubernetes(
    screen: Screen,
    bundle: Bundle,
    *,
    frontend: Annotated[str, Help("name of the frontend's Deployment")],
    container: Annotated[str, Help("container in it that runs dynamo.frontend")],
    model_path: Annotated[str, Help("the workers' model path, to mount at")],
    namespace: Annotated[str, Help("namespace of the Deployment")] = "default",
    volume: SaidVolume,
    out: Annotated[str, Help("folder for the written files")] = "kubernetes",
    apply: Annotated[bool, Help("apply them now with your own kubectl")] = False,
) -> Exit:
    """Write the patch that gives a frontend in Kubernetes the bundle; apply it only when asked."""
    from ..bundle.kubernetes import FrontendDeployment
    from ..flow.bundle_kubernetes import apply_patch, write_patch
    from ..report.bundle import kubernetes_view

    written = write_patch(
        _opened(bundle, load=False, screen=screen),
        FrontendDeployment(frontend, container, namespace),
        _volume(volume),
        model_path=model_path,
        folder=Path(out),
    )
    if apply:
        apply_patch(written, listen=screen.tell)
    screen.show(kubernetes_view(written, applied=apply))
    screen.emit({"schema": "bringup.bundle-kubernetes/1", "commands": written.commands})
    return Exit.DONE


def bundle_doctor(
    screen: Screen,
    *,
    deployment: DeploymentWord = "",
    name: Annotated[str, Help("served model name (default: the deployment's)")] = "",
    frontend: Annotated[str, Help("the frontend's URL (default: the deployment's)")] = "",
    spot: FrontendSpot,
    dynamo: Dynamo = "",
    discovery: DiscoveryPlace,
    workspace: BareWorkspace,
) -> Exit:
    """Tell why a frontend does not list a model, what mends it, and who has to be restarted.

    Looks at what workers announce, at the files as the frontend sees them, at its log, its
    answers and how it was started. Exit codes: 0 listed and sound, 1 a cause was found, 3 none was
    found and something could not be looked at.
    """
    from ..flow.bundle_doctor import Frontend
    from ..flow.bundle_open import (
        announcer,
        deployment_of,
        diagnose_frontend,
        one_site,
        opened,
        said_of,
        way_to_services,
    )

    with opened(workspace, screen.tell, needed=bool(deployment or spot.host)) as (known, tools):
        served = deployment_of(known, deployment)
        model, url = said_of(served, name, frontend)
        near = one_site(known, tools, spot.host)
        way = way_to_services(tools, served, near.name if spot.host else "")
        findings = diagnose_frontend(
            model, Frontend(url, dynamo), spot, near,
            announcer(discovery, served, way), opener=way,
        )  # fmt: skip
    return _tell_diagnosis(screen, model, findings)


def _tell_diagnosis(screen: Screen, model: str, findings: tuple[Finding, ...]) -> Exit:
    from ..bundle.doctor import code_of
    from ..report.bundle import diagnosis_document, diagnosis_view

    screen.show(diagnosis_view(model, findings))
    screen.emit(diagnosis_document(model, findings))
    return code_of(findings)


def _opened(bundle: str, *, load: bool, screen: Screen) -> Opened:
    """Open a bundle, which checks every sum in it; load its tokenizer where that was asked."""
    from ..edge.bundle_files import open_archive

    whole = open_archive(Path(bundle))
    if load:
        from ..edge.tokenizer_load import load_tokenizer

        loaded = load_tokenizer(whole.files)
        screen.show(
            f"loads: {loaded.kind}, the sample is {loaded.tokens} tokens and comes back as it went"
        )
        screen.emit({"schema": "bringup.bundle-load/1", "loaded": loaded})
    return whole


def _volume(said: SaidVolume) -> Volume:
    """Return where a pod gets the files from; raises UsageError unless one way was said."""
    from ..bundle.kubernetes import Claim, HostFolder, InitContainer

    words = (said.claim, said.node_folder, said.init_image)
    if len([word for word in words if word]) != 1:
        raise UsageError(
            "cannot write a patch: say one of --claim, --node-folder, --init-image",
            remedy="--claim NAME for a PVC, --node-folder PATH for a NAS on every node, "
            "--init-image IMAGE to keep it in the cluster",
        )
    if said.claim:
        return Claim(said.claim, said.sub_path)
    return HostFolder(said.node_folder) if said.node_folder else InitContainer(said.init_image)


def _code(row: Placed) -> Exit:
    from ..bundle.reports import PushOutcome

    if row.error is not None:
        return row.error.code
    return Exit.WOULD_CHANGE if row.outcome is PushOutcome.WOULD_CHANGE else Exit.DONE


VERBS = (
    Verb("bundle.make", bundle_make),
    Verb("bundle.check", bundle_check, reads_only=True),
    Verb("bundle.push", bundle_push),
    Verb("bundle.kubernetes", bundle_kubernetes),
    Verb("bundle.doctor", bundle_doctor, reads_only=True),
)
