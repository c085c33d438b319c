"""The CUDA toolkit on the host: nvcc in PATH, CUDA_HOME and the default prefixes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.facts import Probe, looked
from ..core.reading import Known, Reading, Unknown
from ..core.script import Section


@dataclass(frozen=True, slots=True)
class Nvcc:
    """A CUDA compiler of the host. A container has its own: ask `where_engine_runs`."""

    version: str  # "12.9"
    full: str  # "12.9.86"
    path: str
    others: tuple[str, ...] = ()  # further compilers, in PATH order after the first


# A login shell may add CUDA to PATH where ours does not, so the default prefixes are asked as well.
# A wheel's nvcc under site-packages is left alone: its parts come in mixed versions.
SCRIPT = r"""
found=
for nvcc in "$(tool nvcc)" "$R${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" \
  "$R/usr/local/cuda/bin/nvcc" "$R"/usr/local/cuda-*/bin/nvcc "$R/opt/cuda/bin/nvcc" \
  "$R"/opt/nvidia/cuda*/bin/nvcc; do
  [ -n "$nvcc" ] && [ -x "$nvcc" ] || continue
  real=$(readlink -f "$nvcc" 2>/dev/null || echo "$nvcc")
  case $found in *"|$real|"*) continue ;; esac
  found="$found|$real|"
  printf 'path %s\n' "${nvcc#"$R"}"
  "$nvcc" --version || printf 'exit %s\n' $?
done
[ -n "$found" ] || { echo 'nvcc: not found in PATH, CUDA_HOME, /usr/local/cuda*, /opt'; exit 127; }
exit 0
"""

_RELEASE = re.compile(r"release (\d+\.\d+), V(\d+\.\d+\.\d+)")


def parse(section: Section) -> Reading[Nvcc]:
    """Return the first compiler that tells its version; one that does not is unknown."""
    answer = looked(section)
    if not isinstance(answer, Known):
        return answer
    found = []
    for piece in re.split(r"(?m)^path ", section.text)[1:]:
        path, _, told = piece.partition("\n")
        if release := _RELEASE.search(told):
            found.append((path.strip(), release[1], release[2]))
    if not found:
        return Unknown("an nvcc is there and tells no version", section.first)
    path, version, full = found[0]
    others = tuple(f"{where} {which}" for where, _, which in found[1:])
    return Known(Nvcc(version, full, path, others), f"{path}: release {version}, V{full}")


def read_version(text: str, path: str = "") -> Reading[Nvcc]:
    """Return what `nvcc --version` alone tells."""
    release = _RELEASE.search(text)
    if release is None:
        return Unknown("nvcc tells no version", text.strip().split("\n")[0])
    return Known(Nvcc(release[1], release[2], path), release[0])


PROBE = Probe("nvcc", Nvcc, SCRIPT, parse)
