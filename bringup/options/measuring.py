"""What a comparison of topologies measures, and how long it may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ..core.verb import Help


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What is measured where. Empty: the usual."""

    host: Annotated[str, Help("the host to measure on, where the deployment has several")] = ""
    gpus: Annotated[str, Help("GPUs to use, as 0,1; else the deployment's, else all")] = ""
    topology: Annotated[
        tuple[str, ...], Help("dp, tp or 1p1d; repeatable; left out: all three")
    ] = ()
    traffic: Annotated[
        tuple[str, ...],
        Help("decode-heavy (512 in, 2048 out), prefill-heavy (7500 in, 200 out), or 4000x500"),
    ] = ()
    prompts: Annotated[int, Help("requests of each traffic; 0 keeps its own, 128")] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Seconds: how long one traffic may take, how often a start is looked at."""

    within: Annotated[int, Help("most seconds for one traffic")] = 3600
    every: Annotated[float, Help("seconds between two looks at a start")] = 2.0
