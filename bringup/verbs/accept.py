"""Acceptance on what readers see: the stall, not the mean."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from ..core.errors import Exit, UsageError
from ..core.nearest import did_you_mean
from ..core.verb import Help, Verb
from ..report.screen import Screen
from .common import AcceptNew, Folder, KnownHosts, State
from .serve import DeploymentWord, Local

if TYPE_CHECKING:
    from ..serve.load import Limits, Load

Limit = Annotated[float, Help("0 keeps the load's own limit, below 0 lifts it")]


def accept(
    screen: Screen,
    *,
    deployment: DeploymentWord = "",
    load: Annotated[str, Help("k3-report, small, smoke, hicache-flood, -saturate, -revisit")] = "",
    list: Annotated[bool, Help("list the loads; run none")] = False,  # noqa: A002
    url: Annotated[str, Help("the frontend, where it is not the deployment's")] = "",
    via: Annotated[str, Help("direct, ssh, or auto: direct where it answers here")] = "auto",
    gap_p95_ms: Limit = 0.0,
    stall_ms: Limit = 0.0,
    first_token_ms: Limit = 0.0,
    stream_tokens_s: Limit = 0.0,
    streams: Annotated[int, Help("other than the load's own; 0 keeps it")] = 0,
    prompts: Annotated[int, Help("other than the load's own; 0 keeps it")] = 0,
    prompt_tokens: Annotated[int, Help("other than the load's own; 0 keeps it")] = 0,
    seconds: Annotated[float, Help("under load, other than the load's own; 0 keeps it")] = 0.0,
    with_: Annotated[str, Help("aiperf: let AIPerf read the streams too, afterwards")] = "",
    aiperf: Annotated[str, Help("AIPerf's program, where it is not on PATH")] = "",
    tokenizer: Annotated[str, Help("folder or name of the tokenizer, for AIPerf's prompts")] = "",
    local: Local = False,
    inventory: Folder = "inventory",
    state: State = "",
    known_hosts: KnownHosts = "",
    accept_new: AcceptNew = False,
) -> Exit:
    """Measure what running streams feel while long prompts come in, and judge it.

    Streams run alone, then with the load's long prompts; every gap between two tokens counts. The
    result is kept beside the facts, with a page of plots, and shown beside earlier runs and the
    reports' figures. AIPerf may read the same streams afterwards, as a program of its own; stalls
    are judged by our own reader. Exit codes: 0 within the limits, 1 not (a run without a token is
    not), 2 wrong input, 3 not reachable.
    """
    from ..flow.accept import accept as run
    from ..flow.accept import earlier, keep, second
    from ..flow.open import Choice, read_inventory
    from ..flow.serve_open import serving_tools
    from ..flow.targets import find_deployment, target_of
    from ..report.accept import accept_view, page
    from ..serve.acceptance import beside, document
    from ..serve.load import LOADS

    if list:
        screen.show(*(f"{one.name:<18} {one.title} ({one.source})" for one in LOADS.values()))
        screen.emit({"schema": "bringup.loads/1", "loads": tuple(LOADS.values())})
        return Exit.DONE
    wanted = _load(load or "small", streams, prompts, prompt_tokens, seconds)
    limits = _limits(wanted.limits, gap_p95_ms, stall_ms, first_token_ms, stream_tokens_s)
    choice = Choice(inventory, known_hosts=known_hosts, accept_new=accept_new, state=state)
    known = read_inventory(inventory)
    target = target_of(known, find_deployment(known, deployment))
    beside_it = second(target, aiperf, tokenizer) if _wants_aiperf(with_) else None
    with serving_tools(known, choice, screen.tell, local=local) as tools:
        before = earlier(tools, target.deployment.name)
        ran = run(tools, target, wanted, limits, url=url, via=via, beside=beside_it)
        rows = beside(ran.accepted, before)
        file = keep(tools, ran, page(ran.accepted, ran.seen, rows))
    screen.show(accept_view(ran.accepted, rows), f"page  {file}")
    screen.emit({**document(ran.accepted), "beside": rows, "page": file})
    return Exit.DONE if ran.accepted.is_good else Exit.FAILED


def _wants_aiperf(word: str) -> bool:
    if word not in ("", "aiperf"):
        raise UsageError(f"cannot read with {word!r}", remedy="there is: --with aiperf")
    return word == "aiperf"


def _load(name: str, streams: int, prompts: int, prompt_tokens: int, seconds: float) -> Load:
    from ..serve.load import LOADS

    if name not in LOADS:
        raise UsageError(
            f"cannot run load {name!r}: there is none{did_you_mean(name, LOADS)}",
            remedy="bringup accept --list",
        )
    base = LOADS[name]
    if not (streams or prompts or prompt_tokens or seconds):
        return base
    changed = replace(
        base,
        name=f"{name}*",
        streams=streams or base.streams,
        prompts=prompts or base.prompts,
        prompt_tokens=prompt_tokens or base.prompt_tokens,
        load_s=seconds or base.load_s,
    )
    return replace(changed, title=f"{changed.described} (after {name})")


def _limits(base: Limits, gap: float, stall: float, first: float, rate: float) -> Limits:
    return replace(
        base,
        gap_p95_ms=_limit(base.gap_p95_ms, gap),
        stall_ms=_limit(base.stall_ms, stall),
        first_token_ms=_limit(base.first_token_ms, first),
        stream_tokens_s=_limit(base.stream_tokens_s, rate),
    )


def _limit(own: float | None, said: float) -> float | None:
    if said == 0:
        return own
    return None if said < 0 else said


VERBS = (Verb("accept", accept, reads_only=True),)
