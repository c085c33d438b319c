"""Acceptance on what readers see: the stall, not the mean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from ..core.errors import Exit, UsageError
from ..core.nearest import did_you_mean
from ..core.verb import Help, Verb
from ..options.hosts import Workspace
from ..options.serving import DeploymentWord, Local
from ..report.screen import Screen

if TYPE_CHECKING:
    from ..flow.accept import Second
    from ..flow.targets import Target
    from ..serve.acceptance import Accepted, Beside
    from ..serve.load import Limits, Load

Limit = Annotated[float, Help("0 keeps the load's own limit, below 0 lifts it")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidLimits:
    """Limits by the operator's word: milliseconds, tokens/s."""

    gap_p95_ms: Limit = 0.0
    stall_ms: Limit = 0.0
    first_token_ms: Limit = 0.0
    stream_tokens_s: Limit = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidLoad:
    """What is other than the load's own by the operator's word; 0 keeps it."""

    streams: Annotated[int, Help("other than the load's own; 0 keeps it")] = 0
    prompts: Annotated[int, Help("other than the load's own; 0 keeps it")] = 0
    prompt_tokens: Annotated[int, Help("other than the load's own; 0 keeps it")] = 0
    seconds: Annotated[float, Help("under load, other than the load's own; 0 keeps it")] = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondReader:
    """A program that reads the same streams afterwards."""

    with_: Annotated[str, Help("aiperf: let AIPerf read the streams too, afterwards")] = ""
    aiperf: Annotated[str, Help("AIPerf's program, where it is not on PATH")] = ""
    tokenizer: Annotated[str, Help("folder or name of the tokenizer, for AIPerf's prompts")] = ""


def accept(
    screen: Screen,
    *,
    deployment: DeploymentWord = "",
    load: Annotated[str, Help("k3-report, small, smoke, hicache-flood, -saturate, -revisit")] = "",
    list: Annotated[bool, Help("list the loads; run none")] = False,  # noqa: A002
    url: Annotated[str, Help("the frontend, where it is not the deployment's")] = "",
    via: Annotated[str, Help("direct, ssh, or auto: direct where it answers here")] = "auto",
    said: SaidLimits,
    shape: SaidLoad,
    reader: SecondReader,
    local: Local = False,
    workspace: Workspace,
) -> Exit:
    """Measure what running streams feel while long prompts come in, and judge it.

    Streams run alone, then with the load's long prompts; every gap between two tokens counts. The
    result is kept beside the facts, with a page of plots, and shown beside earlier runs and the
    reports' figures. AIPerf may read the same streams afterwards, as a program of its own; stalls
    are judged by our own reader. Exit codes: 0 within the limits, 1 not (a run without a token is
    not), 2 wrong input, 3 not reachable.
    """
    from ..flow.accept import accept as run
    from ..flow.accept import earlier, keep
    from ..flow.serve_open import serving_tools, target_in
    from ..report.accept import page
    from ..serve.acceptance import beside

    if list:
        return _show_loads(screen)
    wanted = _load(load or "small", shape)
    limits = _limits(wanted.limits, said)
    target = target_in(workspace, deployment)
    other = _second(target, reader)
    with serving_tools(target.inventory, workspace, screen.tell, local=local) as tools:
        before = earlier(tools, target.deployment.name)
        ran = run(tools, target, wanted, limits, url=url, via=via, beside=other)
        rows = beside(ran.accepted, before)
        file = keep(tools, ran, page(ran.accepted, ran.seen, rows))
    return _tell(screen, ran.accepted, rows, file)


def _show_loads(screen: Screen) -> Exit:
    from ..serve.load import LOADS

    screen.show(*(f"{one.name:<18} {one.title} ({one.source})" for one in LOADS.values()))
    screen.emit({"schema": "bringup.loads/1", "loads": tuple(LOADS.values())})
    return Exit.DONE


def _second(target: Target, reader: SecondReader) -> Second | None:
    """Return the program that reads the streams too; raises UsageError for a word that is none."""
    from ..flow.accept import second

    if reader.with_ not in ("", "aiperf"):
        raise UsageError(f"cannot read with {reader.with_!r}", remedy="there is: --with aiperf")
    return second(target, reader.aiperf, reader.tokenizer) if reader.with_ else None


def _tell(screen: Screen, accepted: Accepted, rows: tuple[Beside, ...], file: str) -> Exit:
    from ..report.accept import accept_view
    from ..serve.acceptance import document

    screen.show(accept_view(accepted, rows), f"page  {file}")
    screen.emit({**document(accepted), "beside": rows, "page": file})
    return Exit.DONE if accepted.is_good else Exit.FAILED


def _load(name: str, said: SaidLoad) -> Load:
    from ..serve.load import LOADS

    if name not in LOADS:
        raise UsageError(
            f"cannot run load {name!r}: there is none{did_you_mean(name, LOADS)}",
            remedy="bringup accept --list",
        )
    base = LOADS[name]
    if said == SaidLoad():
        return base
    changed = replace(
        base,
        name=f"{name}*",
        streams=said.streams or base.streams,
        prompts=said.prompts or base.prompts,
        prompt_tokens=said.prompt_tokens or base.prompt_tokens,
        load_s=said.seconds or base.load_s,
    )
    return replace(changed, title=f"{changed.described} (after {name})")


def _limits(base: Limits, said: SaidLimits) -> Limits:
    return replace(
        base,
        gap_p95_ms=_limit(base.gap_p95_ms, said.gap_p95_ms),
        stall_ms=_limit(base.stall_ms, said.stall_ms),
        first_token_ms=_limit(base.first_token_ms, said.first_token_ms),
        stream_tokens_s=_limit(base.stream_tokens_s, said.stream_tokens_s),
    )


def _limit(own: float | None, said: float) -> float | None:
    if said == 0:
        return own
    return None if said < 0 else said


VERBS = (Verb("accept", accept, reads_only=True),)
