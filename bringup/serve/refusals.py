"""Why a worker is not started: what stands there, who holds its GPUs and ports, whom Slurm serves.

Each refusal is a finding, so that it shows and counts as a probe's does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ..core.errors import UsageError
from ..core.nearest import did_you_mean
from ..core.rules import Finding, Level, Status
from ..core.steps import Observation, State, Step
from ..engines.spec import Spec
from ..readiness.stages import Worker
from ..readiness.worker_image import short
from .drift import differences
from .steps import is_drifted, is_foreign, moved_image, step_id

SOURCE = "docs/serve.md#what-is-checked-before-a-start"

OWNERS = ("GPU-20", "SLU-01", "SLU-04", "CTR-08", "NET-05")
"""Checks of the host whose failure forbids a start: somebody else is there."""

SERVICES = ("NET-01", "NET-03")
"""Checks of services that a worker cannot start without."""

PAIR = ("pair-image",)
"""Rules across hosts whose failure forbids a start: a pair on two images answers with garbage."""

STRICT = ("SLU-01",)
"""Checks that must pass: where nobody knows, Slurm may start a job on the same GPUs."""


def refuse_unknown(accepted: Iterable[str]) -> None:
    """Raise UsageError for a check that forbids no start: a slip of the pen accepts nothing."""
    known = (*OWNERS, *PAIR, *SERVICES)
    for name in accepted:
        if name not in known:
            raise UsageError(
                f"cannot accept {name!r}: no such check forbids a start{did_you_mean(name, known)}",
                remedy=f"those that do: {', '.join(known)}",
            )


def of_host(
    findings: Iterable[Finding], *, accept: Iterable[str] = (), own_services: bool = False
) -> Iterator[Finding]:
    """Yield the findings that forbid a start on a host; accepted ones become notes."""
    wanted = (*OWNERS, *PAIR) if own_services else (*OWNERS, *PAIR, *SERVICES)
    accepted = set(accept)
    for finding in findings:
        if finding.id not in wanted or not _forbids(finding):
            continue
        if finding.id in PAIR:
            said = ("cannot start workers on different images", *finding.evidence)
            finding = replace(finding, evidence=said)  # noqa: PLW2901 - the same finding, told here
        if finding.id in accepted:
            yield replace(finding, level=Level.NOTE)
        else:
            yield replace(finding, level=Level.BLOCK)


def _forbids(finding: Finding) -> bool:
    if finding.id in STRICT:
        return finding.status not in (Status.PASS, Status.SKIP)
    return finding.status is Status.FAIL


def of_workers(
    workers: Iterable[tuple[Worker, Spec]],
    seen: Mapping[str, Observation],
    *,
    recreate: bool,
) -> Iterator[Finding]:
    """Yield what forbids to start single workers: a foreign container, or a drifted one."""
    for worker, spec in workers:
        found = seen.get(step_id(worker))
        if found is None:
            continue
        if is_foreign(found):
            yield foreign(worker, found)
        elif is_drifted(found) and not recreate:
            yield drifted(worker, spec, found)


def foreign(worker: Worker, found: Observation) -> Finding:
    """Return the refusal to touch what bringup did not start."""
    return Finding(
        "serve-foreign", f"{worker.name} is not ours", Status.FAIL, Level.BLOCK, worker.host,
        (f"its container is {found.found.partition(' ')[0]}, without a label of bringup",),
        "what bringup did not start is never stopped or replaced",
        f"ask its owner; or give the role another container_name (docker inspect {worker.name})",
        SOURCE,
    )  # fmt: skip


def drifted(worker: Worker, spec: Spec, found: Observation) -> Finding:
    """Return the refusal to replace a worker that runs with other settings, with what differs."""
    config = found.found.split()[1]
    other = config != worker.config
    said = (f"runs as {config[:19]}, its script has {worker.config[:19]}",) if other else ()
    what = "with other settings" if other else "an image that its name has left"
    return Finding(
        "serve-drifted", f"{worker.name} runs {what}", Status.FAIL, Level.BLOCK, worker.host,
        (*said, *_images(spec, found), *differences(spec, found.detail)),
        "a worker that serves is not stopped unless somebody says so",
        "bringup serve.start --recreate (or serve.restart, one worker after the other)",
        SOURCE,
    )  # fmt: skip


def _images(spec: Spec, found: Observation) -> tuple[str, ...]:
    held = moved_image(found)
    if held is None:
        return ()
    return (
        f"- image {short(held.made_from)}",
        f"+ image {short(held.stands_for)}, for which {spec.image} stands by now",
    )


def scripts(host: str, steps: Iterable[Step], seen: Mapping[str, Observation]) -> Iterator[Finding]:
    """Yield the refusal to run scripts that are not what the inventory wants by now."""
    differing = [step.title for step in steps if not _same(seen.get(step.id))]
    if differing:
        yield Finding(
            "serve-scripts", "The written scripts are not up to date", Status.FAIL, Level.BLOCK,
            host, tuple(differing),
            "a worker is started by the script that is there, which may be of another day",
            f"bringup provision --host {host}", SOURCE,
        )  # fmt: skip


def _same(seen: Observation | None) -> bool:
    return seen is not None and seen.state is State.SAME


def waves(workers: Iterable[Worker]) -> tuple[tuple[Worker, ...], ...]:
    """Return workers in the order they start: services, prefill, decode, what is in front."""
    every = sorted(workers, key=lambda worker: (rank(worker), worker.host, worker.name))
    ranks = sorted({rank(worker) for worker in every})
    return tuple(tuple(w for w in every if rank(w) == wave) for wave in ranks)


def rank(worker: Worker) -> int:
    """Return the place in the order of starting."""
    if worker.is_service:
        return 0
    if worker.is_front:
        return 3
    return 1 if worker.mode.value == "prefill" else 2
