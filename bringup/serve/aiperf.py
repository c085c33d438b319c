"""NVIDIA's AIPerf as a second reader: its words, and what its export tells. Pure.

Flags and keys are those of aiperf 0.13.0, run for real against Dynamo's frontend.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .load import Load

EXPORT = "profile_export_aiperf.json"
TOKENS = 128
"""Length of each answer that it asks for."""

ROUNDS = 2
"""Answers of each stream."""


@dataclass(frozen=True, slots=True)
class Aiperf:
    """What AIPerf saw of the streams alone. Times in ms, None where it told none.

    `mean_gap_*` is its "inter token latency": the mean gap of each request, spread over requests,
    so that one stall hardly shows. `gap_*` is its "inter chunk latency": every single gap.
    """

    version: str = ""
    requests: int = 0
    tokens_s: float | None = None
    first_ms: float | None = None
    mean_gap_ms: float | None = None
    mean_gap_p99_ms: float | None = None
    gap_p50_ms: float | None = None
    gap_p95_ms: float | None = None
    gap_p99_ms: float | None = None
    gap_most_ms: float | None = None
    error: str = ""
    command: str = ""


def words(
    program: str, load: Load, *, url: str, model: str, tokenizer: str, folder: str
) -> tuple[str, ...]:
    """Return the command that reads as many streams as the load has, and nothing beside them."""
    return (
        program, "profile",
        "--model", model,
        "--url", url,
        "--endpoint-type", "chat",
        "--streaming",
        "--tokenizer", tokenizer,
        "--use-server-token-count",
        "--isl", str(load.stream_prompt_tokens), "--isl-stddev", "0",
        "--osl", str(TOKENS), "--osl-stddev", "0",
        "--extra-inputs", "ignore_eos:true",
        "--concurrency", str(load.streams),
        "--request-count", str(load.streams * ROUNDS),
        "--ui", "none",
        "--export-level", "summary",
        "--no-gpu-telemetry",
        "--no-server-metrics",
        "--output-artifact-dir", folder,
    )  # fmt: skip


def parse(text: str, command: str = "") -> Aiperf:
    """Return what an export tells. Raises ValueError where it is none."""
    data = json.loads(text)
    if not isinstance(data, dict) or "aiperf_version" not in data:
        raise ValueError("it is no export of AIPerf")
    count = int(_number(data, "request_count", "avg") or 0)
    rate = _number(data, "request_error_rate", "avg") or 0.0
    return Aiperf(
        version=str(data["aiperf_version"]),
        requests=count,
        tokens_s=_number(data, "output_token_throughput", "avg"),
        first_ms=_number(data, "time_to_first_token", "avg"),
        mean_gap_ms=_number(data, "inter_token_latency", "avg"),
        mean_gap_p99_ms=_number(data, "inter_token_latency", "p99"),
        gap_p50_ms=_number(data, "inter_chunk_latency", "p50"),
        gap_p95_ms=_number(data, "inter_chunk_latency", "p95"),
        gap_p99_ms=_number(data, "inter_chunk_latency", "p99"),
        gap_most_ms=_number(data, "inter_chunk_latency", "max"),
        error=_fault(data, count, rate),
        command=command,
    )


def _fault(data: Mapping[str, Any], count: int, rate: float) -> str:
    if rate > 0:
        errors = data.get("error_summary") or [{}]
        first = errors[0] if isinstance(errors, list) else {}
        return f"{rate:.0f} % of its requests failed: {json.dumps(first)[:200]}"
    tokens = _number(data, "total_output_tokens", "avg") or 0.0
    return "" if count and tokens else "not one token came"


def _number(data: Mapping[str, Any], metric: str, statistic: str) -> float | None:
    found = data.get(metric)
    value = found.get(statistic) if isinstance(found, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
