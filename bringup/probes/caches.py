"""Caches of compiled kernels: there or cold, on which file system, with how much room."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.facts import Probe, looked
from ..core.reading import Known, Reading, Unknown
from ..core.script import Section

NETWORK = ("nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "fuse", "cifs", "smb", "wekafs")


@dataclass(frozen=True, slots=True)
class JitCaches:
    """`warm` says by cache name (flashinfer, vllm, triton, …) whether it holds something.

    `file_system` and `free_gib` are those of the folder that holds them.
    """

    warm: Mapping[str, bool] = field(default_factory=dict)
    file_system: str = ""
    free_gib: float | None = None
    folder: str = ""

    @property
    def is_network(self) -> bool:
        return self.file_system.lower().startswith(NETWORK)

    @property
    def is_memory(self) -> bool:
        return self.file_system.lower() in ("tmpfs", "ramfs")


FOLDERS: Mapping[str, tuple[str, ...]] = {
    "flashinfer": (".cache/flashinfer",),
    "vllm": (".cache/vllm/torch_compile_cache", ".cache/vllm"),
    "triton": (".triton/cache", ".cache/triton"),
    "inductor": (".cache/torchinductor", ".cache/torch/inductor"),
    "sglang": (".cache/sglang", ".cache/deep_gemm"),
}

SCRIPT = r"""
h=${HOME:-/root}; d=$R$h
echo "folder $h/.cache"
for p in flashinfer:.cache/flashinfer vllm:.cache/vllm/torch_compile_cache triton:.triton/cache \
  inductor:.cache/torchinductor sglang:.cache/sglang; do
  f="$d/${p#*:}"; w=no
  [ -d "$f" ] && [ -n "$(ls -A "$f" 2>/dev/null | head -n 1)" ] && w=yes
  echo "cache ${p%%:*} $w"
done
for f in "$d/.cache" "$d" "$R/"; do
  [ -d "$f" ] || continue
  echo "type $(stat -f -c %T "$f" 2>/dev/null)"
  echo "free $(df -Pk "$f" 2>/dev/null | tail -n 1)"
  break
done
exit 0
"""


def parse(section: Section) -> Reading[JitCaches]:
    """Return the caches; no line at all is unknown."""
    answer = looked(section, absent=())
    if not isinstance(answer, Known):
        return answer
    text = section.text
    warm = {n: w == "yes" for n, w in re.findall(r"(?m)^cache (\w+) (yes|no)$", text)}
    if not warm:
        return Unknown("no cache folder could be looked at", section.first)
    kind = re.search(r"(?m)^type (\S+)", text)
    free = re.search(r"(?m)^free .*?(\d+)\s+(\d+)\s+(\d+)\s+\d+%", text)
    folder = re.search(r"(?m)^folder (\S+)", text)
    caches = JitCaches(
        warm,
        kind[1] if kind else "",
        int(free[3]) / 1024**2 if free else None,
        folder[1] if folder else "",
    )
    return Known(caches, ", ".join(f"{n} {'warm' if w else 'cold'}" for n, w in warm.items()))


def kernel_folder(base: str, digest: str, cache: str) -> str:
    """Return where one kind of compiled kernels lies: BASE/IMAGE/CACHE, or BASE/CACHE.

    IMAGE are twelve digits of the image's digest, where it is known.
    """
    image = digest.removeprefix("sha256:")[:12]
    return "/".join(part for part in (base.rstrip("/"), image, cache) if part)


def cache_of(path: str) -> str:
    """Return the name of the cache that a folder is, or ""."""
    bare = path.rstrip("/")
    return next((n for n, ends in FOLDERS.items() if any(bare.endswith(e) for e in ends)), "")


PROBE = Probe("caches", JitCaches, SCRIPT, parse, volatile=True)
