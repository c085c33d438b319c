"""Proof that CUDA starts: what cuInit answers, and how many devices it then counts.

Asked after nvidia-smi: a driver that hangs there is not asked again here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.facts import Probe, looked
from ..core.reading import Known, Reading, Unknown
from ..core.script import Section

ERRORS = {
    3: "not initialized",
    35: "the driver is older than the program's CUDA",
    46: "devices busy or unavailable",
    100: "no CUDA device",
    101: "invalid device",
    209: "no kernel image for this GPU",
    214: "uncorrectable ECC error",
    222: "PTX made by an unsupported toolchain",
    304: "operating system call failed",
    719: "launch failed",
    802: "system not yet initialized",
    803: "driver and library do not match",
    804: "forward compatibility on unsupported hardware",
    999: "unknown error",
}
"""CUDA result codes that a host's state causes (cuda.h)."""


@dataclass(frozen=True, slots=True)
class CudaProof:
    """What cuInit (or the first CUDA call of a program) answered: 0 is success."""

    code: int
    devices: int | None = None
    where: str = ""  # "host", or the container's name
    line: str = ""


# ctypes rather than a CUDA program: the host need not have one, and cuInit makes no context.
SCRIPT = r"""
tool python3 >/dev/null || { echo 'python3: not found'; exit 4; }
ask python3 -c '
import ctypes
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    print("no libcuda:", error)
    raise SystemExit(127)
code, count = cuda.cuInit(0), ctypes.c_int(0)
counted = code == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
print("cuInit", code, count.value if counted else "-")'
"""


def parse(section: Section) -> Reading[CudaProof]:
    """Return the answer of cuInit; absent where there is no libcuda to ask."""
    answer = looked(section)
    if not isinstance(answer, Known):
        return answer
    found = re.search(r"(?m)^cuInit (\d{1,4}) (\d+|-)$", section.text)
    if found is None:
        return Unknown("cuInit could not be asked", section.first)
    devices = int(found[2]) if found[2] != "-" else None
    line = f"cuInit {found[1]}" + (f", {devices} devices" if devices is not None else "")
    return Known(CudaProof(int(found[1]), devices, "host", line), line)


_CODES = (
    (r"(?:CUDA_ERROR_SYSTEM_NOT_READY|system not yet initialized|\berror:? 802\b)", 802),
    (r"(?:CUDA_ERROR_SYSTEM_DRIVER_MISMATCH|system has unsupported display driver)", 803),
    (r"forward compatibility was attempted on non supported HW", 804),
    (r"no kernel image is available for execution", 209),
    (r"(?:provided PTX was compiled with an unsupported toolchain)", 222),
    (r"(?:CUDA_ERROR_NO_DEVICE|no CUDA-capable device is detected)", 100),
    (r"all CUDA-capable devices are busy or unavailable", 46),
    (r"(?:CUDA_ERROR_ECC_UNCORRECTABLE|uncorrectable ECC error encountered)", 214),
    (r"CUDA driver version is insufficient for CUDA runtime version", 35),
    (r"NVIDIA driver on your system is too old", 35),
    (r"Found no NVIDIA driver on your system", 100),
    (r"(?:CUDA unknown error|CUDA_ERROR_UNKNOWN)", 999),
)


def read_error(text: str, where: str = "") -> Reading[CudaProof]:
    """Return the CUDA error that a program's output names, or unknown."""
    for line in text.splitlines():
        for pattern, code in _CODES:
            if re.search(pattern, line):
                return Known(CudaProof(code, None, where, line.strip()), line.strip())
    return Unknown("no CUDA error is named")


PROBE = Probe("cuda", CudaProof, SCRIPT, parse, seconds=15, tool="nvidia-smi", volatile=True)
