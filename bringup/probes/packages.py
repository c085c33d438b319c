"""Python packages of the host's own interpreter: torch, the engines, FlashInfer and its kernels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.facts import Probe, looked
from ..core.reading import Known, Reading, Unknown
from ..core.script import Section

WANTED = (
    "torch", "vllm", "sglang", "flashinfer-python", "flashinfer-cubin", "flashinfer-jit-cache",
    "triton", "ai-dynamo", "ai-dynamo-runtime", "nixl", "nixl-cu12", "nixl-cu13",
    "nvidia-nccl-cu12", "nvidia-nccl-cu13", "deep-gemm", "transformers",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PythonPackages:
    """Versions by normalised name; `missing` were asked for and are surely not installed."""

    versions: Mapping[str, str] = field(default_factory=dict)
    missing: frozenset[str] | None = None
    torch_cuda: str = ""
    torch_archs: tuple[str, ...] | None = None
    nccl: str = ""


# Metadata are read, nothing is imported: importing torch takes seconds and memory.
SCRIPT = rf"""
tool python3 >/dev/null || {{ echo 'python3: not found'; exit 127; }}
ask python3 - {" ".join(WANTED)} <<'PY'
import importlib.metadata as metadata, re, sys
for name in sys.argv[1:]:
    try:
        print("package", name, metadata.version(name))
    except Exception:
        print("missing", name)
try:
    text = metadata.distribution("torch").locate_file("torch/version.py").read_text()
    print("torch-cuda", re.search(r"cuda\b.*?=\s*'([\d.]+)'", text)[1])
except Exception:
    pass
print("end")
PY
"""


def parse(section: Section) -> Reading[PythonPackages]:
    """Return the packages; a host without Python surely has none."""
    answer = looked(section)
    if not isinstance(answer, Known):
        return answer
    text = section.text
    if not re.search(r"(?m)^end$", text):
        return Unknown("python3 could not list its packages", section.first)
    versions = dict(re.findall(r"(?m)^package (\S+) (\S+)$", text))
    cuda = re.search(r"(?m)^torch-cuda (\S+)$", text)
    packages = PythonPackages(
        versions, frozenset(re.findall(r"(?m)^missing (\S+)$", text)), cuda[1] if cuda else ""
    )
    shown = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    return Known(packages, shown or "none of the packages that engines need")


def read_pip(text: str, pattern: str = "") -> Reading[PythonPackages]:
    """Return what `pip list` or `pip freeze` prints. `pattern`: the grep that it went through."""
    rows = re.findall(r"(?m)^([A-Za-z][\w.-]*)(?:\s+|==)(\d[\w.+!-]*)", text)
    versions = {_name(name): version for name, version in rows}
    asked = [name for name in WANTED if name not in versions and _matches(pattern, name)]
    if not versions and not asked:
        return Unknown("pip listed nothing that can be read", text.strip().split("\n")[0])
    is_whole = bool(versions) and not pattern
    missing = frozenset(WANTED) - versions.keys() if is_whole else frozenset(asked)
    return Known(PythonPackages(versions, missing), ", ".join(map(" ".join, rows)))


def read_torch(text: str) -> Reading[PythonPackages]:
    """Return what a program printed as torch's version and CUDA: ``2.11.0+cu130 13.0``."""
    found = re.search(r"(?m)^(\d+\.\d+\.\d+\S*)\s+(\d+\.\d+|None)\b", text)
    if found is None:
        return Unknown("torch's version cannot be read", text.strip().split("\n")[0])
    archs = tuple(dict.fromkeys(re.findall(r"\b((?:sm|compute)_\d+[af]?)\b", text)))
    cuda = found[2] if found[2] != "None" else "none"
    return Known(PythonPackages({"torch": found[1]}, None, cuda, archs or None), found[0].strip())


def _name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _matches(pattern: str, name: str) -> bool:
    try:
        return bool(pattern) and re.search(pattern, name, re.IGNORECASE) is not None
    except re.error:
        return False


PROBE = Probe("packages", PythonPackages, SCRIPT, parse, seconds=8)
