"""Confidential computing of GPUs, where somebody asked for it with `nvidia-smi conf-compute`.

Its GPUs take no work until an attested host says that they are ready
(https://docs.nvidia.com/confidential-computing).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.reading import Known, Reading, Unknown


@dataclass(frozen=True, slots=True)
class ConfidentialComputing:
    """Whether the mode is on, and whether its GPUs take work; None where it was not told."""

    is_on: bool | None = None
    is_ready: bool | None = None


def read(text: str) -> Reading[ConfidentialComputing]:
    """Read `nvidia-smi conf-compute -f`, `-grs` or `-q`."""
    mode = re.search(r"(?mi)^\s*CC (?:status|state|feature)\s*:\s*(on|off|devtools)\s*$", text)
    ready = re.search(r"(?mi)^\s*.*\bready state\s*:\s*(not[ _-]?ready|ready)\s*$", text)
    if mode is None and ready is None:
        return Unknown("nvidia-smi conf-compute told no state", text.strip().partition("\n")[0])
    seen = ConfidentialComputing(
        mode[1].lower() != "off" if mode else None,
        ready[1].lower() == "ready" if ready else None,
    )
    return Known(seen, "; ".join(found[0].strip() for found in (mode, ready) if found))
