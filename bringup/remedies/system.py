"""Remedies for OS and TIM: limits, shared memory, processors, the clock."""

from __future__ import annotations

from dataclasses import replace

from ..core.fixes import Risk
from ..core.reading import Known
from ..core.rules import World
from ..core.steps import Step
from ..probes.clock import Clock
from ..probes.container import ContainerEngine
from ..probes.system import Processors
from ..rules.toolchain import inside
from ..steps.command import command_step
from ..steps.edit import edited_file, mount_line
from ..steps.file import text_file
from ..steps.kernel import sysctl_steps
from ..steps.login import limits_step
from ..steps.service import drop_in, restart_step, service_step
from .container import while_containers_run
from .memory import swap_steps
from .remedy import Remedy, manager_of
from .sources import packages

LINES = (
    "*    -  memlock  unlimited",
    "*    -  nofile   524288",
    "root -  memlock  unlimited",
    "root -  nofile   524288",
)
"""Half of what the kernel allows by default: more than fs.nr_open would lock every login out."""


def _login(world: World) -> tuple[Step, ...]:
    """A container takes its limits from its start script, a login from these."""
    return () if inside(world) else (limits_step(LINES),)


def _files(world: World) -> tuple[Step, ...]:
    engine = world.facts[ContainerEngine]
    if not inside(world) and world.deployment is not None:
        return (limits_step(LINES),)
    if not isinstance(engine, Known) or engine.value.name != "docker":
        return ()
    part = drop_in("docker", "[Service]\nLimitNOFILE=1048576\n")
    path = part.id.removeprefix("file:")
    return part, restart_step("docker", files=[path], follows=[part.id])


SHM_MIB = 64 * 1024
_SHM = rf"""
n=$(df -Pm /dev/shm 2>/dev/null | awk 'NR == 2 {{ print $2 }}')
[ "${{n:-0}}" -ge {SHM_MIB} ] && echo enough || echo "${{n:-0}} MiB"
"""


def _shared(world: World) -> tuple[Step, ...]:
    if inside(world):
        return ()
    at = "/dev/shm"  # noqa: S108 - the mount itself
    line = f"tmpfs {at} tmpfs rw,nosuid,nodev,size={SHM_MIB}m 0 0"
    kept = edited_file("/etc/fstab", mount_line(at, line), title="size /dev/shm at every start")
    now = command_step(
        "shm", f"let /dev/shm grow to {SHM_MIB // 1024} GiB", _SHM, "enough",
        ("mount", "-o", f"remount,size={SHM_MIB}m", at),
        why="a limit only: memory is taken when it is used",
    )  # fmt: skip
    return kept, now


UNIT = """\
[Unit]
Description=Run all processors at full speed (bringup)

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'for f in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do \
echo performance >"$$f"; done'

[Install]
WantedBy=multi-user.target
"""
_GOVERNOR = r"""
cat "$R"/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor 2>/dev/null | sort -u | tr '\n' ' ' |
  sed 's/ $//'
echo
"""
_GOVERN = r"""
for f in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do
  echo performance >"$f" || exit
done
"""


def _governor(world: World) -> tuple[Step, ...]:
    reading = world.facts[Processors]
    if not isinstance(reading, Known) or "powersave" not in reading.value.governors:
        return ()
    unit = text_file("/etc/systemd/system/bringup-governor.service", UNIT,
                     title="write a unit that sets the governor")  # fmt: skip
    now = command_step(
        "governor", "run all processors at full speed", _GOVERNOR, "performance",
        ("sh", "-c", _GOVERN),
    )  # fmt: skip
    return unit, now, service_step("bringup-governor", follows=[unit.id])


def _balancing(world: World) -> tuple[Step, ...]:
    reading = world.facts[Processors]
    is_on = isinstance(reading, Known) and reading.value.numa_balancing
    return (*(sysctl_steps("kernel.numa_balancing", "0") if is_on else ()), *swap_steps(world))


_CAN = '[ "$(timedatectl show -p CanNTP --value 2>/dev/null)" != yes ] || { echo installed; exit; }'
_NTP = "timedatectl show -p NTP --value 2>/dev/null || echo unknown"
# timedated lists the services that can set the clock when it starts, and may be older than chrony.
_SET_NTP = "systemctl try-restart systemd-timedated; exec timedatectl set-ntp true"


def _clock(world: World) -> tuple[Step, ...]:
    """Start the time service that is there; install chrony where there is none.

    chrony takes the place of systemd-timesyncd, so it is not put beside it.
    """
    reading, manager = world.facts[Clock], manager_of(world)
    unit = "chrony" if manager == "apt" else "chronyd"
    if not manager or not isinstance(reading, Known):
        return ()
    if reading.value.by == "chronyc":
        return (service_step(unit),)
    *before, chrony = packages(world, "chrony")
    chrony = replace(chrony, observe=f"{_CAN}\n{chrony.observe}")
    on = command_step("ntp", "let a time service set the clock", _NTP, "yes",
                      ("sh", "-c", _SET_NTP), follows=[chrony.id])  # fmt: skip
    return *before, chrony, on


ROWS: tuple[Remedy, ...] = (
    Remedy("TIM-01", "let a time service set the clock", _clock, 8, touches_units=True),
    Remedy("OS-02", "let logins lock memory", _login, 40, cost="counts from the next login on"),
    Remedy("OS-07", "let the engine open many files", _files, 41, Risk.SERVICE,
           cost="docker restarts", unless=while_containers_run, touches_units=True),
    Remedy("OS-03", "let /dev/shm grow", _shared, 42),
    Remedy("OS-05", "run all processors at full speed", _governor, 43, touches_units=True),
    Remedy("OS-06", "turn NUMA balancing and swap off", _balancing, 44),
)  # fmt: skip
