"""The traffic that topologies are measured with, and what a report measured with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..engines.topology_load import B200, Topology


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests that all come at once. Lengths in tokens a request."""

    name: str
    input_tokens: int
    output_tokens: int
    prompts: int

    @property
    def title(self) -> str:
        """The lengths in words."""
        return f"{self.input_tokens:,} in, {self.output_tokens:,} out"

    @property
    def prefill_share(self) -> float:
        """Which share of the tokens are read rather than written."""
        return self.input_tokens / (self.input_tokens + self.output_tokens)


TRAFFIC: Mapping[str, Traffic] = MappingProxyType(
    {
        one.name: one
        for one in (
            Traffic("decode-heavy", 512, 2048, 128),
            Traffic("prefill-heavy", 7500, 200, 128),
        )
    }
)
"""The 2×B200 report's two. It tells the count of prompts, 128, of the first one only."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A published result on two B200: tokens a second, and mean ms a token after the first."""

    model: str
    topology: Topology
    traffic: str
    output_tokens_s: float
    tpot_ms: float
    source: str = B200


_QWEN, _GEMMA = "Qwen3.6-27B-NVFP4", "gemma-4-26B-A4B-it-FP8-Dynamic"

FIGURES = (
    Figure(_QWEN, Topology.COPIES, "decode-heavy", 8245, 11.4),
    Figure(_QWEN, Topology.COPIES, "prefill-heavy", 2230, 32.8),
    Figure(_QWEN, Topology.TENSOR, "decode-heavy", 7655, 12.2),
    Figure(_QWEN, Topology.TENSOR, "prefill-heavy", 1545, 44.1),
    Figure(_QWEN, Topology.PAIR, "decode-heavy", 6023, 14.8),
    Figure(_QWEN, Topology.PAIR, "prefill-heavy", 1330, 9.9),
    Figure(_GEMMA, Topology.TENSOR, "decode-heavy", 7069, 13.6),
    Figure(_GEMMA, Topology.TENSOR, "prefill-heavy", 1730, 40.9),
    Figure(_GEMMA, Topology.PAIR, "decode-heavy", 5766, 17.9),
    Figure(_GEMMA, Topology.PAIR, "prefill-heavy", 1474, 8.7),
)
"""vLLM 0.24.0. Copies of gemma-4 did not start: two attempts."""
