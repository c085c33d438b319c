"""What ``vllm bench serve`` wrote, as a measurement. Keys: vllm/benchmarks/serve.py, 0.24.0."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .traffic import Traffic


@dataclass(frozen=True, slots=True)
class Measured:
    """One traffic's result. Times in ms unless named otherwise; None: the tool did not tell it.

    `tpot_ms` is the mean of each request's own mean gap; `itl_*` are over all gaps of all requests.
    """

    traffic: str
    seconds: float
    asked: int
    completed: int
    input_tokens: int
    output_tokens: int
    output_tokens_s: float
    tpot_ms: float | None = None
    itl_p50_ms: float | None = None
    itl_p95_ms: float | None = None
    itl_p99_ms: float | None = None
    ttft_ms: float | None = None
    ttft_p99_ms: float | None = None
    command: str = ""
    wall_s: float = 0.0  # of the tool as a whole, its own start included

    @property
    def fault(self) -> str:
        """Why this does not count as a result, "" where it does."""
        if self.output_tokens <= 0 or self.output_tokens_s <= 0:
            return "not one token came"
        if self.completed < self.asked:
            return f"{self.asked - self.completed} of {self.asked} requests failed"
        return ""


def parse(text: str, traffic: Traffic, command: str = "") -> Measured:
    """Return the measurement in a result file. Raises ValueError where it holds none."""
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - one error for all that is odd
    missing = [key for key in NEEDED if _number(data, key) is None]
    if missing:
        raise ValueError(f"it has no {', '.join(missing)}")
    told = {key: _number(data, key) or 0.0 for key in NEEDED}
    times = {field: _number(data, key) for field, key in TIMES.items()}
    return Measured(
        traffic.name,
        told["duration"],
        traffic.prompts,
        int(told["completed"]),
        int(told["total_input_tokens"]),
        int(told["total_output_tokens"]),
        told["output_throughput"],
        tpot_ms=times["tpot_ms"],
        itl_p50_ms=times["itl_p50_ms"],
        itl_p95_ms=times["itl_p95_ms"],
        itl_p99_ms=times["itl_p99_ms"],
        ttft_ms=times["ttft_ms"],
        ttft_p99_ms=times["ttft_p99_ms"],
        command=command,
    )


NEEDED = (
    "duration", "completed", "total_input_tokens", "total_output_tokens", "output_throughput",
)  # fmt: skip
TIMES = {
    "tpot_ms": "mean_tpot_ms",
    "itl_p50_ms": "p50_itl_ms",
    "itl_p95_ms": "p95_itl_ms",
    "itl_p99_ms": "p99_itl_ms",
    "ttft_ms": "mean_ttft_ms",
    "ttft_p99_ms": "p99_ttft_ms",
}


def _number(data: Mapping[str, Any], key: str) -> float | None:
    """Return a number; what is no finite number is nothing: a run without tokens has NaN."""
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
