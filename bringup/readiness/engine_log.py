"""How far an engine has loaded, by its own log: SGLang, vLLM, and Dynamo's lines around them.

Wording of SGLang 0.4 to 0.5, vLLM 0.10 to 0.33 and Dynamo 1.3 and 1.6, as public issues show it.
A line that no row knows tells nothing, and does not extend the wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class Phase(IntEnum):
    """What an engine does until it serves, in order; some engines leave some out."""

    STARTED = 0
    JOINING = 1
    WEIGHTS = 2
    COMPILING = 3
    CACHE = 4
    GRAPHS = 5
    WARMUP = 6
    SERVING = 7


WORDS = {
    Phase.STARTED: "started",
    Phase.JOINING: "ranks join",
    Phase.WEIGHTS: "weights",
    Phase.COMPILING: "compiling",
    Phase.CACHE: "KV cache",
    Phase.GRAPHS: "graph capture",
    Phase.WARMUP: "warm-up",
    Phase.SERVING: "up",
}


@dataclass(frozen=True, slots=True)
class Progress:
    """Where an engine is: a phase, how many of how many, and the line that says so.

    `passed` counts how often progress was seen. It only grows: a bar that a second rank draws
    again from its start is none.
    """

    phase: Phase = Phase.STARTED
    done: int = 0
    total: int = 0
    line: str = ""
    passed: int = 0

    @property
    def share(self) -> float | None:
        return min(1.0, self.done / self.total) if self.total else None

    def __str__(self) -> str:
        count = f" {self.done}/{self.total}" if self.total else ""
        return f"{WORDS[self.phase]}{count}"


_COUNT = r"(?:Completed\s*)?\|[^|]*?\s*(?P<done>\d+)/(?P<total>\d+)"

_ROWS: tuple[tuple[Phase, re.Pattern[str]], ...] = tuple(
    (phase, re.compile(text))
    for phase, text in (
        (Phase.SERVING, r"Application startup complete"),
        (Phase.SERVING, r"The server is fired up and ready to roll"),
        (Phase.SERVING, r"Successfully registered LLM with runtime config"),
        (Phase.SERVING, r"\bregistered \S+ as \S+"),
        (Phase.WARMUP, r"prefill warmup (starting|complete)|Start of prefill warmup"),
        (Phase.WARMUP, r"init engine \(profile, create kv cache, warmup model\) took"),
        (Phase.WARMUP, r"Capture (target \w+ )?(cuda|CUDA) graph end"),
        (Phase.WARMUP, r"Graph capturing finished in"),
        (Phase.WARMUP, r"[Ww]arm(ing)?[ _-]?up.*?\|\s*(?P<done>\d+)/(?P<total>\d+)"),
        (Phase.GRAPHS, rf"Capturing (CUDA graphs?|batches|num tokens).*?{_COUNT}"),
        (Phase.GRAPHS, r"Capture (target \w+ )?(cuda|CUDA) graph begin"),
        (Phase.GRAPHS, r"Capturing (CUDA graphs?|cudagraphs)"),
        (Phase.CACHE, r"KV Cache is allocated|Memory pool end"),
        (Phase.CACHE, r"(Available|GPU) KV cache (memory|size)"),
        (Phase.COMPILING, r"DeepGEMM.*?\|\s*(?P<done>\d+)/(?P<total>\d+)"),
        (Phase.COMPILING, r"Try DeepGEMM JIT Compiling|DeepGEMM warm-?up"),
        (Phase.COMPILING, r"Dynamo bytecode transform time|Compiling a graph|torch\.compile to"),
        (Phase.COMPILING, r"flashinfer\.jit.*(Loading|Building|Compiling) JIT ops"),
        (Phase.COMPILING, r"torch\.compile (takes|took)"),
        (Phase.COMPILING, r"Loading weights took|Model loading took|Load weight end"),
        (Phase.WEIGHTS, rf"Loading \S+ checkpoint shards.*?{_COUNT}"),
        (Phase.WEIGHTS, rf"(Multi-thread l|L)oading (shards|weights).*?{_COUNT}"),
        (Phase.WEIGHTS, r"Load weight begin|Starting to load model|Loading model weights"),
        (Phase.JOINING, r"Init torch distributed begin|world_size=\d+ rank=\d+"),
        (Phase.JOINING, r"Init torch distributed ends?"),
        (Phase.STARTED, r"server_args=ServerArgs|non-default args:|\bloading for [\d.]+ s"),
    )
)


def progress(lines: Iterable[str], before: Progress | None = None) -> Progress:
    """Return where an engine is after more lines of its log."""
    now = before or Progress()
    for line in lines:
        seen = _seen(line)
        if seen is not None and _is_further(seen, now):
            phase, done, total = seen
            now = Progress(phase, done, total, line.strip(), now.passed + 1)
    return now


def _seen(line: str) -> tuple[Phase, int, int] | None:
    for phase, pattern in _ROWS:
        hit = pattern.search(line)
        if hit:
            groups = hit.groupdict()
            return phase, int(groups.get("done") or 0), int(groups.get("total") or 0)
    return None


def _is_further(seen: tuple[Phase, int, int], now: Progress) -> bool:
    """A later phase, or more of the same. A second pass (a draft model) does not go back."""
    phase, done, total = seen
    if phase is not now.phase or not now.line:
        return phase > now.phase or not now.line
    return total == now.total and done > now.done if now.total else total > 0
