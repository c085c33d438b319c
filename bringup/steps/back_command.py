"""The way back of commands: what each of them set, by the name of its step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..core.receipt import Done
from ..core.steps import Action, Run, Step
from ..core.words import command, quote
from .back_service import restart_back
from .version_lock import ACT, LOOK
from .way_back import Back, step_back


def command_back(name: str, done: Done) -> Back:
    """Return the way back of a command, or why it needs none."""
    if why := _STAY.get(name):
        return Back(done.id, why_not=why)
    make = _MAKE.get(name)
    if make is None:
        return Back(
            done.id, why_not="it left nothing that lasts, or nothing that can be taken back"
        )
    return make(done)


_STAY = {
    "device-links": "links in /dev/char hurt nobody, and are gone at the next start",
    "device-links-now": "links in /dev/char hurt nobody, and are gone at the next start",
}


def _look(done: Done, observe: str) -> Step:
    """Return eyes for a state that a line of a shell tells."""
    return Step(done.id, "", observe, done.wanted, ())


def _run(script: str, *words: str, told: str) -> tuple[Action, ...]:
    return (Run(("sh", "-c", script, "sh", *words), told=told),)


_HELD = r"""
held=" $(apt-mark showhold | tr '\n' ' ') "
for p in {names}; do case $held in *" $p "*) echo "all held"; exit 0 ;; esac; done
echo {before}
"""
_UNHOLD = r"""
for p; do ! dpkg-query -W "$p" >/dev/null 2>&1 || apt-mark unhold "$p" || exit; done
"""


def _hold_driver(done: Done) -> Back:
    names = done.found.removeprefix("not held:").split()
    seen = _HELD.format(names=command(names), before=quote(done.found))
    return step_back(
        done, _look(done, seen), done.found, _run(_UNHOLD, *names, told="apt-mark unhold"),
        f"release {' '.join(names)}",
    )  # fmt: skip


_LOCKED = """
for p in {names}; do ! held "$p" || {{ echo "all held"; exit 0; }}; done
echo {before}
"""


def _lock_driver(done: Done) -> Back:
    names = done.found.removeprefix("not held:").split()
    seen = LOOK + _LOCKED.format(names=command(names), before=quote(done.found))
    act = _run(f'{ACT}unlock "$@"', *names, told="dnf versionlock delete")
    return step_back(done, _look(done, seen), done.found, act, f"release {' '.join(names)}")


def _cdi(done: Done) -> Back:
    path = "/etc/cdi/nvidia.yaml"
    if done.found != "absent":
        return Back(done.id, why_not=f"the {path} before it was for another driver")
    seen = f"[ -e {path} ] && echo {quote(done.wanted)} || echo absent"
    act = _run(f"rm -f {path}; rmdir /etc/cdi 2>/dev/null; :", told=f"rm {path}")
    return step_back(done, _look(done, seen), "absent", act, f"remove {path}")


_PERSISTENCE = r"""
t=$(nvidia-smi --query-gpu=persistence_mode --format=csv,noheader 2>/dev/null) || t=unknown
case $t in *Enabled*) echo on ;; *Disabled*) echo off ;; *) echo unknown ;; esac
"""


def _persistence(done: Done) -> Back:
    if done.found != "off":
        return Back(done.id, why_not=f"its state before was {done.found}")
    act: tuple[Action, ...] = (Run(("nvidia-smi", "-pm", "0")),)
    return step_back(done, _look(done, _PERSISTENCE), "off", act, "turn persistence mode off")


_GOVERNOR = r"""
cat /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor 2>/dev/null | sort -u | tr '\n' ' ' |
  sed 's/ $//'
echo
"""
_GOVERN = r"""
for f in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do echo "$1" >"$f" || exit; done
"""


def _governor(done: Done) -> Back:
    if len(done.found.split()) != 1:
        return Back(done.id, why_not=f"processors had several: {done.found}")
    act = _run(_GOVERN, done.found, told=f"set the governor {done.found}")
    return step_back(done, _look(done, _GOVERNOR), done.found, act, f"set {done.found} again")


def _ntp(done: Done) -> Back:
    seen = "timedatectl show -p NTP --value 2>/dev/null || echo unknown"
    act: tuple[Action, ...] = (Run(("timedatectl", "set-ntp", "false")),)
    return step_back(done, _look(done, seen), done.found, act, "let no time service set the clock")


_SHM = "df -Pm /dev/shm | awk 'NR == 2 { print $2 \" MiB\" }'"


def _shm(done: Done) -> Back:
    size = done.found.removesuffix(" MiB")
    if not size.isdecimal() or size == "0":
        return Back(done.id, why_not=f"its size before was {done.found}")
    seen = f'n=$({_SHM}); [ "$n" = {quote(done.found)} ] && echo "$n" || echo enough'
    act: tuple[Action, ...] = (Run(("mount", "-o", f"remount,size={size}m", "/dev/shm")),)  # noqa: S108
    unless = (
        f"u=$(df -Pm /dev/shm | awk 'NR == 2 {{ print $3 }}'); [ \"$u\" -lt {size} ] || "
        'echo "$u MiB of it are in use"'
    )
    return step_back(
        done, _look(done, seen), done.found, act, f"let /dev/shm have {done.found} again",
        unless=unless,
    )  # fmt: skip


_UVM_USED = r"""
r=0; { read -r r </sys/module/nvidia_uvm/refcnt; } 2>/dev/null
[ "$r" = 0 ] || echo "nvidia_uvm is in use"
"""


def _uvm(done: Done) -> Back:
    seen = "[ -e /dev/nvidia-uvm ] && echo present || echo absent"
    act: tuple[Action, ...] = (Run(("rm", "-f", "/dev/nvidia-uvm")),)
    return step_back(
        done, _look(done, seen), done.found, act, "remove /dev/nvidia-uvm", unless=_UVM_USED
    )


def _runtime(done: Done) -> Back:
    """Restart docker: a runtime that its configuration has no more is forgotten at a start only."""
    return restart_back("docker", replace(done, id="restart:docker", wanted="current"))


def _swap(done: Done) -> Back:
    seen = '[ "$(wc -l </proc/swaps)" -le 1 ] && echo off || echo on'
    act: tuple[Action, ...] = (Run(("swapon", "-a"), seconds=600),)
    return step_back(done, _look(done, seen), done.found, act, "turn swap on")


def _swap_at_start(done: Done) -> Back:
    path = "/etc/systemd/system/swap.target"
    seen = f'[ "$(readlink {path})" = /dev/null ] && echo masked || echo "not masked"'
    act = _run(f"rm -f {path}", told=f"rm {path}")
    return step_back(done, _look(done, seen), done.found, act, "let swap be there at every start")


_MAKE: Mapping[str, Callable[[Done], Back]] = {
    "hold-driver": _hold_driver, "lock-driver": _lock_driver, "cdi": _cdi,
    "persistence": _persistence, "governor": _governor, "ntp": _ntp, "shm": _shm,
    "nvidia-uvm": _uvm, "docker-runtime": _runtime, "swap": _swap, "swap-at-start": _swap_at_start,
}  # fmt: skip
