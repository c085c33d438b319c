"""Settings of the engine in the environment, where somebody looked at it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.reading import Known, Reading, Unknown

PREFIXES = ("VLLM_", "SGLANG_", "FLASHINFER_", "NCCL_", "UCX_", "CUDA_", "TRITON_", "DYN_", "HF_",
            "ETCD_", "NATS_", "TORCH_", "NVIDIA_", "LD_LIBRARY_PATH", "PATH")  # fmt: skip
SECRET = re.compile(r"(?i)token|secret|password|key$")


@dataclass(frozen=True, slots=True)
class Environment:
    """Variables by name; `unset` are names or prefixes that surely are not set."""

    values: Mapping[str, str] = field(default_factory=dict)
    unset: frozenset[str] = frozenset()

    def is_unset(self, name: str) -> bool:
        """Tell whether a variable was looked for and is not set."""
        return name not in self.values and any(name.startswith(prefix) for prefix in self.unset)


def read_env(text: str, pattern: str = "") -> Reading[Environment]:
    """Return what `env` prints. `pattern`: the grep that it went through."""
    pairs = re.findall(r"(?m)^([A-Z][A-Z0-9_]*)=(.*)$", text)
    values = {name: value for name, value in pairs if not SECRET.search(name)}
    if pattern:
        unset = frozenset(prefix for prefix in PREFIXES if _asks(pattern, prefix))
    else:
        unset = frozenset(PREFIXES) if values else frozenset()
    if not values and not unset:
        return Unknown("env printed nothing that can be read", text.strip().partition("\n")[0])
    return Known(Environment(values, unset), ", ".join(f"{k}={v}" for k, v in values.items()))


def _asks(pattern: str, prefix: str) -> bool:
    return prefix.rstrip("_") in pattern
