"""Whether one request passed through both workers: by its stream, by logs, or by counters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..core.host import Mode
from ..core.reading import Absent, Known, Reading, Unknown
from .stages import Chat
from .watch import State

SIDES = (Mode.PREFILL, Mode.DECODE)

_COUNTERS = re.compile(
    r"^(?:dynamo_component_requests_total\{[^}]*dynamo_endpoint=\"generate\"[^}]*\}"
    r"|vllm:request_success_total(?:\{[^}]*\})?|sglang:num_requests_total(?:\{[^}]*\})?)"
    r"\s+([0-9.eE+]+)",
    re.MULTILINE,
)


_FAMILY = re.compile(r"(?m)^(?:# \w+ )?(?:dynamo_component_|vllm:|sglang:)")


def requests(metrics: str, *, asked: bool) -> float | None:
    """Return how many requests a worker's counters tell of, None where they tell of none.

    A worker that was not `asked` anything yet may show its other counters alone: that is 0. After a
    request, a page without the counter is no sign that the worker stood idle.
    """
    found = [float(value) for value in _COUNTERS.findall(metrics)]
    if found:
        return sum(found)
    return 0.0 if not asked and _FAMILY.search(metrics) else None


def prove(
    state: State,
    chat: Chat,
    before: Mapping[str, float | None],
    after: Mapping[str, float | None],
) -> Reading[str]:
    """Return what proves that both sides worked on a request.

    Absent means that one side surely did not; unknown, that nothing tells yet.
    """
    for reading in (by_stream(state, chat), by_logs(state, chat), by_counters(before, after)):
        if not isinstance(reading, Unknown):
            return reading
    return Unknown("neither stream, logs nor counters tell who worked on the request")


def by_stream(state: State, chat: Chat) -> Reading[str]:
    """Worker ids in the stream (``nvext.worker_id``)."""
    prefill, decode = chat.workers.get("prefill"), chat.workers.get("decode")
    if prefill is None or decode is None:
        return Unknown("the stream names no workers")
    if prefill == decode:
        return Absent(f"worker {prefill:x} did both prefill and decode")
    shown = f"prefill {_where(state, prefill)}, decode {_where(state, decode)}"
    return Known(f"worker ids in the stream: {shown}")


def _where(state: State, instance: int) -> str:
    """Return an instance with its host, as far as its address tells."""
    instances = state.announced.instances if state.announced else ()
    addresses = {i.address.rpartition(":")[0] for i in instances if i.instance == instance}
    hosts = {
        watched.worker.host
        for watched in state.workers.values()
        if addresses & set(watched.worker.addresses)
    }
    place = f" on {hosts.pop()}" if len(hosts) == 1 else ""
    return f"{instance:x}{place}"


def by_logs(state: State, chat: Chat) -> Reading[str]:
    """The request's id in the logs of both sides."""
    if not chat.request:
        return Unknown("the answer has no request id")
    seen = {mode: _logged(state, mode, chat.request) for mode in SIDES}
    if all(seen.values()):
        return Known(f"request {chat.request} in the logs of {' and '.join(seen.values())}")
    return Unknown("the request's id is not in both logs")


def _logged(state: State, mode: Mode, request: str) -> str:
    """Return the host whose log has the id, "" for none."""
    for watched in state.workers.values():
        if watched.worker.mode is mode and any(request in line for line in watched.lines[-2000:]):
            return watched.worker.host
    return ""


def by_counters(
    before: Mapping[str, float | None], after: Mapping[str, float | None]
) -> Reading[str]:
    """Counters of prefill and decode workers that have both grown; keys are those of SIDES."""
    grown = {mode.value: _grown(before.get(mode.value), after.get(mode.value)) for mode in SIDES}
    if any(growth is None for growth in grown.values()):
        return Unknown("the workers' counters were not read")
    if all(grown.values()):
        shown = ", ".join(f"{side} +{growth:g}" for side, growth in grown.items())
        return Known(f"the workers' request counters grew: {shown}")
    idle = " and ".join(side for side, growth in grown.items() if not growth)
    return Absent(f"the request counter of {idle} did not grow")


def _grown(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def total(values: Iterable[float | None]) -> float | None:
    """Return the sum of what was read, None where nothing was."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
