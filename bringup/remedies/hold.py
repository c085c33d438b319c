"""Keep unattended upgrades away from the driver and its companions, by apt or by dnf.

A library that is newer than the loaded module breaks every GPU program until a reboot.
"""

from __future__ import annotations

from ..core.rules import World
from ..core.steps import Step
from ..rules.checks_gpu_driver import driver_version
from ..steps.command import command_step
from ..steps.package import locker_step
from ..steps.version_lock import ACT, LOOK
from .remedy import manager_of

_DEBS = "nvidia-* libnvidia-* cuda-drivers* linux-modules-nvidia-*"
_UNHELD = rf"""
set -f
held=" $(apt-mark showhold | tr '\n' ' ') "
left=
for p in $(dpkg-query -W -f '${{db:Status-Status}} ${{Package}}\n' {_DEBS} 2>/dev/null |
  sed -n 's/^installed //p' | grep -v container); do
  case $held in *" $p "*) ;; *) left="$left $p" ;; esac
done
"""
_RPMS = "nvidia-* libnvidia-* cuda-drivers* kmod-nvidia* akmod-nvidia*"
_UNLOCKED = rf"""
{LOOK}
left=
set -f
every=$(rpm -qa --qf '%{{NAME}}\n' {_RPMS} | sort -u | grep -v container)
set +f
for p in $every; do held "$p" || left="$left $p"; done
"""
_TOLD = '[ -z "$left" ] && echo "all held" || echo "not held:$left"'


def hold_driver(world: World) -> tuple[Step, ...]:
    """Return the steps that hold what is installed of the driver; () where there is no driver."""
    manager = manager_of(world)
    if not manager or not driver_version(world):
        return ()
    title = "hold the driver's packages"
    if manager == "apt":
        act = f'{_UNHELD}[ -z "$left" ] || apt-mark hold $left'
        return (command_step("hold-driver", title, _UNHELD + _TOLD, "all held", ("sh", "-c", act)),)
    act = f'{_UNLOCKED}{ACT}[ -z "$left" ] || lock $left'
    step = command_step("lock-driver", title, _UNLOCKED + _TOLD, "all held", ("sh", "-c", act))
    return locker_step(), step
