"""FAB-04: what the fabric of NVLink 5 needs beside fabric manager."""

from __future__ import annotations

from ..core.reading import Absent, Known, Unknown
from ..core.rules import Level, Row, Seen, World, failed, passed, skipped, warned
from ..probes.fabric import FabricManager
from ..probes.imex import Imex
from ..probes.kernel import Modules
from .checks_fabric import OPERATOR, ORDER, applies, has_failed, is_complete
from .judging import not_told, unread
from .where import needs_network

CHANNEL = (
    "echo 'options nvidia NVreg_CreateImexChannel0=1' > /etc/modprobe.d/imex-channel.conf; reboot"
)


def _trays(world: World) -> Seen | None:
    """Judge what lends memory between the trays of a rack, for a worker on several of them."""
    kind, deployment, role = world.kind, world.deployment, world.role
    if kind is None or kind.form != "rack" or deployment is None or role is None:
        return None
    if not needs_network(deployment, role):
        return None
    reading = world.facts[Imex]
    if isinstance(reading, Unknown):
        return unread(reading)
    remedy = (
        "write the trays' addresses to /etc/nvidia-imex/nodes_config.cfg, then: systemctl enable "
        "--now nvidia-imex; else NCCL_MNNVL_ENABLE=0 takes the network cards"
    )
    if isinstance(reading, Known) and reading.value.channels is False:
        line = "no /dev/nvidia-caps-imex-channels/channel0: CUDA maps no other tray's memory"
        return failed(line, level=Level.WARN, remedy=CHANNEL)
    if isinstance(reading, Known) and not reading.value.state:
        return not_told("the state of nvidia-imex")
    if isinstance(reading, Absent) or reading.value.state != "active":
        line = "without it no tray reaches another's GPUs over NVLink"
        return failed(reading.evidence, line, level=Level.WARN, remedy=remedy)
    return passed(reading.evidence)


def _prerequisites(world: World) -> Seen:
    if seen := _trays(world):
        return seen
    if why := applies(world) or _other_way(world):
        return skipped(why)
    modules, manager = world.facts[Modules], world.facts[FabricManager]
    missing = list(_missing_modules(modules.value)) if isinstance(modules, Known) else []
    parts = manager.value if isinstance(manager, Known) else FabricManager()
    if parts.nvlsm is False:
        missing.append("nvlsm (the NVLink subnet manager) is not installed")
    if parts.mode not in ("", "0"):
        missing.append(f"FABRIC_MODE={parts.mode}, bare metal needs 0")
    if missing:
        is_hurt = is_complete(world) is False or has_failed(world)
        level = Level.BLOCK if is_hurt else Level.WARN
        return failed(*missing, level=level, remedy=_load(modules, ORDER))
    if parts.ibstat is False:
        return warned("ibstat is missing: the start script of fabric manager may call it",
                      remedy="apt-get install infiniband-diags", level=Level.NOTE)  # fmt: skip
    if not isinstance(modules, Known):
        return unread(modules)
    if modules.value.has("ib_umad") is None and modules.value.has("mlx5_ib") is None:
        return not_told("modules ib_umad and mlx5_ib")
    return passed("ib_umad, mlx5_ib and nvlsm are there")


def _other_way(world: World) -> str:
    if world.kind is None:
        return "the kind of board is not known"
    if not world.kind.nvlsm:
        return f"{world.kind.name}: NVSwitches are not managed over InfiniBand"
    return ""


def _missing_modules(modules: Modules) -> list[str]:
    found = []
    for name in ("mlx5_ib", "ib_umad"):
        if modules.has(name) is False:
            on_disk = modules.installed.get(name)
            state = ", and not installed for this kernel" if on_disk is False else ""
            found.append(f"module {name} is not loaded{state}")
        elif modules.has(name) is None and modules.installed.get(name) is False:
            found.append(f"module {name} is not installed for this kernel")
    return found


def _load(modules: object, order: str) -> str:
    lacks = isinstance(modules, Known) and False in modules.value.installed.values()
    return f"apt-get install linux-modules-extra-$(uname -r); {order}" if lacks else order


ROWS: tuple[Row[World], ...] = (
    Row(
        "FAB-04",
        "NVLink 5 prerequisites are there",
        _prerequisites,
        reason="the NVSwitches of B200 and B300 boards are managed over InfiniBand: without "
        "mlx5_ib, ib_umad and nvlsm fabric manager finds nothing",
        source=OPERATOR,
        remedy=ORDER,
    ),
)
