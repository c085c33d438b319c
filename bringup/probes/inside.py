"""What an engine sees inside its image or running container; a host's own tools prove nothing here.

Filled from a running container (`containers.inside_probe`), or on request from the image itself
(`image_look`), which starts a container without GPUs and network that ends at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.facts import Probe
from ..core.reading import Absent, Known, Reading, Unknown
from ..core.script import Section
from ..core.words import quote
from .packages import WANTED
from .parts import NOT_ASKED, joined
from .text import answered, first, told
from .toolkit import Nvcc, read_version


@dataclass(frozen=True, slots=True)
class Inside:
    """A look from within. None or "": not told; `Reading` fields say why.

    `rdma` are the RDMA devices that verbs sees inside, `gpus` is their count. Memory lock and
    shared memory are in KiB and MiB; a lock of -1 is unlimited.
    """

    image: str = ""
    container: str = ""
    gpus: Reading[int] = NOT_ASKED
    rdma: Reading[tuple[str, ...]] = NOT_ASKED
    rdma_nodes: Reading[tuple[str, ...]] = NOT_ASKED  # names in /dev/infiniband
    nvcc: Reading[Nvcc] = NOT_ASKED
    packages: Mapping[str, str] = field(default_factory=dict)  # name to version
    missing_packages: frozenset[str] | None = None  # asked for and surely absent
    torch_cuda: str = ""
    torch_archs: tuple[str, ...] | None = None  # e.g. "sm_100"
    tools: Mapping[str, bool] = field(default_factory=dict)  # gcc, g++, ninja, ptxas, Python.h
    ucx_transports: tuple[str, ...] | None = None
    memlock_kib: int | None = None
    shm_mib: int | None = None
    nofile: int | None = None
    privileged: bool | None = None
    capabilities: tuple[str, ...] | None = None
    devices: tuple[str, ...] | None = None  # device paths given one by one, or CDI names
    gpu_request: str = ""  # how GPUs were asked for: "gpus", "cdi", "runtime", "devices", "none"
    network: str = ""
    ipc: str = ""
    mounts: tuple[str, ...] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    image_id: str = ""


# nvcc may be installed and not in PATH, as on a host. Metadata are read, nothing is imported.
TOOLS_LOOK = rf"""
v=$(PATH=$PATH:/usr/local/cuda/bin nvcc --version 2>&1); echo "nvcc	$?	$(echo $v)"
for t in gcc g++ cc clang ninja ptxas; do
  command -v $t >/dev/null && echo "tool	$t	yes" || echo "tool	$t	no"
done
h=no; for f in /usr/include/python3*/Python.h /usr/local/include/python3*/Python.h; do
  [ -e "$f" ] && h=yes; done; echo "tool	Python.h	$h"
python3 -c '
import importlib.metadata as metadata, re, sys
for name in sys.argv[1:]:
    try:
        print("package", name, metadata.version(name), sep="\t")
    except Exception:
        print("missing", name, sep="\t")
try:
    text = metadata.distribution("torch").locate_file("torch/version.py").read_text()
    print("torch-cuda", re.search("cuda.*?([0-9]+[.][0-9]+)", text)[1], sep="\t")
except Exception:
    pass' {" ".join(WANTED)} 2>/dev/null || :
"""


def tools_seen(text: str) -> Inside:
    """Return what the lines of `TOOLS_LOOK` tell of compilers and packages."""
    found = told(text)
    code, _, said = first(found, "nvcc").partition("\t")
    pairs = dict(re.findall(r"(?m)^tool\t(\S+)\t(yes|no)$", text))
    packages = dict(re.findall(r"(?m)^package\t(\S+)\t(\S+)$", text))
    missing = frozenset(found.get("missing", ()))
    return Inside(
        nvcc=_nvcc(code, said),
        packages=packages,
        missing_packages=missing if packages or missing else None,
        torch_cuda=first(found, "torch-cuda"),
        tools={name: word == "yes" for name, word in pairs.items()},
    )


def _nvcc(code: str, said: str) -> Reading[Nvcc]:
    if code == "127":
        return Absent(said or "nvcc: not found")
    return read_version(said) if code == "0" else Unknown(said or "not told", said)


def image_look(reference: str) -> Probe[Inside]:
    """Return the question what an image holds, on request: it starts and ends one container."""
    script = f"""
e=docker; tool docker >/dev/null || e=podman
printf 'image\\t%s\\n' {quote(reference)}
ask $e run --rm --pull never --network none --entrypoint sh {quote(reference)} \\
  -c {quote(TOOLS_LOOK)} && printf 'end\\tof image\\n'
"""
    return Probe("inside", Inside, script, parse_image, seconds=60, tool="docker", volatile=True)


def parse_image(section: Section) -> Reading[Inside]:
    """Return what the image holds; absent where the engine has no such image."""
    if re.search(r"(?i)no such image|unable to find image|image not known", section.text):
        return Absent(section.text.strip().splitlines()[-1])
    if section.exit not in (0, None) and not section.trouble:
        return Unknown(section.text.strip().rpartition("\n")[2] or f"exit {section.exit}")
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    found = told(answer.value)
    if first(found, "end") != "of image":
        return Unknown("the image's answer was cut off", section.first)
    seen = joined(Inside(image=first(found, "image")), tools_seen(answer.value))
    return Known(seen, f"{seen.image}: {len(seen.packages)} packages")
