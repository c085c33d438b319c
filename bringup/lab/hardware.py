"""What a practice host is made of: the schema of one file under `lab/hosts`.

Only values: `describe` reads the files, the generators beside this module turn a `Hardware` into
what the real tools would print.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from .described import described
from .software import Docker, FabricManager, ModelFolder, Mount, Slurm, Toolkit, Unit

USER = "operator"
"""The login of every practice host."""


@described
class OperatingSystem:
    """As /etc/os-release and /proc say."""

    id: str
    version: str
    codename: str
    name: str
    kernel: str
    command_line: str = "ro quiet iommu=pt"


@described
class Cpu:
    """`cores` are those of one socket; a socket is a NUMA node."""

    model: str
    sockets: int = 2
    cores: int = 56
    threads: int = 2
    governor: str = "performance"

    @property
    def count(self) -> int:
        return self.sockets * self.cores * self.threads

    def numbers(self, node: int) -> str:
        """Return the CPU list of a NUMA node: ``0-55,112-167``."""
        first, total = node * self.cores, self.sockets * self.cores
        spans = (first + thread * total for thread in range(self.threads))
        return ",".join(f"{start}-{start + self.cores - 1}" for start in spans)


@described
class Driver:
    """The NVIDIA driver. `library` differs after an upgrade under a loaded module."""

    version: str
    cuda: str
    module: Literal["open", "proprietary"] = "open"
    persistence: bool = True
    library: str = ""


@described
class Slot:
    """One GPU: where it sits (`lspci -PP` notation) and values that differ from a healthy one.

    `values` replaces words of the templates in `nvidia-smi.yml`, by their name there.
    """

    pci: str
    numa: int
    values: Mapping[str, str] = field(default_factory=dict)


@described
class Gpus:
    """The GPUs of a host. Memory in MiB, power in W, NVLink in GB/s per link and direction."""

    product: str
    device_id: str
    compute_capability: str
    memory_mib: int
    power_w: int
    slots: tuple[Slot, ...]
    architecture: str = "Blackwell"
    subsystem_id: str = "0000"
    reserved_mib: int = 640
    minimum_power_w: int = 200
    vbios: str = "97.00.00.00.00"
    sm_mhz: int = 1920
    memory_mhz: int = 3996
    nvlinks: int = 18
    nvlink_gb_s: str = "53.125"
    inactive_links: int = 0
    mig: str = "Disabled"
    values: Mapping[str, str] = field(default_factory=dict)


@described
class Card:
    """A kind of RDMA card. `rate` is what sysfs says of a port with link."""

    product: str
    device_id: str
    type: str
    firmware: str
    rate: str
    board_id: str = "MT_0000000000"


@described
class Port:
    """One RDMA device with its only port."""

    name: str
    card: str
    pci: str
    numa: int
    purpose: Literal["compute", "storage", "bridge"]
    state: Literal["ACTIVE", "INIT", "DOWN"] = "ACTIVE"
    link_layer: Literal["InfiniBand", "Ethernet"] = "InfiniBand"


@described
class Saying:
    """What a tool says instead of its usual answer."""

    text: str
    exit: int = 0


@described
class Faults:
    """Ways in which the host itself is sick. Tools are named as they are called.

    `login` is the SSH server's: refuse closes at once, mute accepts and says nothing, stall never
    answers the key. `drop_after_bytes` cuts the connection after so much output, and
    `freeze_after_bytes` keeps it open without another byte. `read_only` lists unwritable folders.
    """

    hang: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    slow_s: Mapping[str, float] = field(default_factory=dict)
    say: Mapping[str, Saying] = field(default_factory=dict)
    login: Literal["", "refuse", "mute", "stall"] = ""
    slow_ms: int = 0
    drop_after_bytes: int = 0
    freeze_after_bytes: int = 0
    read_only: tuple[str, ...] = ()


@described
class Hardware:
    """One practice host whole. `name` is the file's name, `about` its first line for people."""

    name: str
    about: str
    os: OperatingSystem
    cpu: Cpu
    memory_gib: int
    kind: str = ""
    system: str = "GPU server"
    groups: tuple[str, ...] = ()
    driver: Driver | None = None
    gpus: Gpus | None = None
    cards: Mapping[str, Card] = field(default_factory=dict)
    ports: tuple[Port, ...] = ()
    modules: tuple[str, ...] = ()
    modules_on_disk: tuple[str, ...] = ()  # installed, not loaded
    fabric_manager: FabricManager | None = None
    units: Mapping[str, Unit] = field(default_factory=dict)
    docker: Docker | None = None
    toolkits: tuple[Toolkit, ...] = ()
    packages: Mapping[str, str] = field(default_factory=dict)  # of Python, name to version
    programs: tuple[str, ...] = ()  # compilers and such, to be found but not run
    python_headers: bool = False
    kernel_log: tuple[str, ...] = ()
    models: tuple[ModelFolder, ...] = ()
    mounts: tuple[Mount, ...] = ()
    slurm: Slurm | None = None
    sudo: Literal["passwordless", "password", "absent"] = "passwordless"
    clock_synchronized: bool = True
    faults: Faults = Faults()

    @property
    def slots(self) -> tuple[Slot, ...]:
        return self.gpus.slots if self.gpus else ()


def invented(*words: object) -> str:
    """Return 64 hex digits that follow from the words: the same on every run, neutral, unique."""
    return hashlib.sha256("/".join(map(str, words)).encode()).hexdigest()


def gpu_uuid(host: str, index: int) -> str:
    """Return the UUID of a GPU as NVML prints it."""
    return f"GPU-{uuid.UUID(invented(host, 'gpu', index)[:32])}"


def address(host: str) -> str:
    """Return the host's address, out of the range kept for tests of networks (RFC 2544).

    The family gives the third number and the host's own number the last, so that a family of 254
    hosts has 254 addresses.
    """
    stem, digits = re.fullmatch(r"(.*?)(\d*)", host).groups()  # type: ignore[union-attr]
    number = int(digits or int(invented(host)[:4], 16))
    return f"198.18.{int(invented(stem)[:4], 16) % 256}.{(number - 1) % 254 + 1}"
