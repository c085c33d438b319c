"""Services of a practice host as systemd, the fabric manager, chrony and Slurm tell of them."""

from __future__ import annotations

from collections.abc import Iterator

from .hardware import Hardware
from .software import Slurm, Unit
from .tree import Entry, File, Folder, Tree

DATA = "/usr/lib/lab"
STAMP = "Tue 2026-01-13 07:41:50 UTC"
_LOG = "Jan 13 07:41:50"


def files(hardware: Hardware) -> Tree:
    """Return the data of the service tools."""
    return dict(_entries(hardware))


def _entries(hardware: Hardware) -> Iterator[tuple[str, Entry]]:
    if hardware.units:
        yield "/run/systemd/system", Folder()
        yield "/proc/1/comm", File("systemd\n")
        yield "/proc/1/stat", File("1 (systemd) S 0 1 1 0 -1 4194560\n")
    for name, unit in hardware.units.items():
        base = f"{DATA}/systemctl/{name}.service"
        yield f"{base}/show", File(_show(name, unit))
        yield f"{base}/status", File(_status(hardware.name, name, unit))
        yield f"{base}/log", File(_log(hardware.name, unit))
    if hardware.fabric_manager:
        yield from _fabric(hardware)
    answer = "yes" if hardware.clock_synchronized else "no"
    yield f"{DATA}/timedatectl/synchronized", File(f"{answer}\n")
    yield f"{DATA}/chronyc/tracking", File(_tracking(synchronized=hardware.clock_synchronized))
    if hardware.slurm:
        yield from _slurm(hardware, hardware.slurm)


_SUB = {"active": "running", "failed": "failed", "inactive": "dead"}


def _show(name: str, unit: Unit) -> str:
    """Return all properties that `systemctl show` prints, in systemd's order."""
    rows = {
        "Type": "simple", "Restart": "on-failure", "NRestarts": unit.restarts,
        "MainPID": 0 if unit.active != "active" else 1000 + sum(name.encode()),
        "Result": "exit-code" if unit.active == "failed" else "success",
        "ExecMainStatus": int(unit.active == "failed"), "Id": f"{name}.service",
        "Names": f"{name}.service", "Description": unit.description, "LoadState": "loaded",
        "ActiveState": unit.active, "SubState": _SUB[unit.active],
        "FragmentPath": f"/usr/lib/systemd/system/{name}.service",
        "DevicePolicy": "auto", "DeviceAllow": "",
        "UnitFileState": unit.enabled, "UnitFilePreset": "enabled",
        "ActiveEnterTimestamp": STAMP if unit.active == "active" else "",
    }  # fmt: skip
    return "".join(f"{key}={value}\n" for key, value in rows.items())


def _status(host: str, name: str, unit: Unit) -> str:
    """Return `systemctl status` of a unit."""
    mark = {"active": "●", "failed": "×", "inactive": "○"}[unit.active]
    state = {
        "active": f"active (running) since {STAMP}; 1 week 3 days ago",
        "failed": f"failed (Result: exit-code) since {STAMP}; 25min ago",
        "inactive": "inactive (dead)",
    }[unit.active]
    loaded = f"/usr/lib/systemd/system/{name}.service; {unit.enabled}; preset: enabled"
    head = f"{mark} {name}.service - {unit.description}\n     Loaded: loaded ({loaded})\n"
    return f"{head}     Active: {state}\n\n{_log(host, unit)}"


def _log(host: str, unit: Unit) -> str:
    """Return what the journal has of a unit."""
    lines = (f"systemd[1]: Starting {unit.description}...", *unit.log)
    last = f"systemd[1]: {'Started' if unit.active == 'active' else 'Failed to start'} "
    ends = (f"{last}{unit.description}.",) if unit.active != "inactive" else ()
    return "".join(f"{_LOG} {host} {line}\n" for line in (*lines, *ends))


def _fabric(hardware: Hardware) -> Iterator[tuple[str, Entry]]:
    assert hardware.fabric_manager
    version = hardware.fabric_manager.version
    yield f"{DATA}/nv-fabricmanager/version", File(f"Fabric Manager version is : {version}\n")
    config = "LOG_LEVEL=4\nDAEMONIZE=1\nFABRIC_MODE=0\nFABRIC_MODE_RESTART=0\n"
    yield "/usr/share/nvidia/nvswitch/fabricmanager.cfg", File(config)
    if hardware.fabric_manager.nvlsm:
        yield "/opt/nvidia/nvlsm/sbin/nvlsm", File("#!/bin/sh\nexit 1\n", 0o755)
        yield "/usr/lib/x86_64-linux-gnu/libnvsdm.so.1", File("")


def _tracking(*, synchronized: bool) -> str:
    if not synchronized:
        return "Reference ID    : 00000000 ()\nLeap status     : Not synchronised\n"
    rows = (
        ("Reference ID", "C0000201 (192.0.2.1)"), ("Stratum", "3"),
        ("Ref time (UTC)", "Tue Jan 13 08:10:02 2026"),
        ("System time", "0.000012345 seconds fast of NTP time"),
        ("Last offset", "+0.000004321 seconds"), ("RMS offset", "0.000021000 seconds"),
        ("Frequency", "12.345 ppm slow"), ("Leap status", "Normal"),
    )  # fmt: skip
    return "".join(f"{key:<16}: {value}\n" for key, value in rows)


def _slurm(hardware: Hardware, slurm: Slurm) -> Iterator[tuple[str, Entry]]:
    count = len(hardware.slots)
    node = (
        f"NodeName={hardware.name} Arch=x86_64 CoresPerSocket={hardware.cpu.cores} \n"
        f"   CPUAlloc=0 CPUEfctv={hardware.cpu.count} CPUTot={hardware.cpu.count} CPULoad=0.98\n"
        f"   Gres=gpu:{count}\n   NodeAddr={hardware.name} NodeHostName={hardware.name}\n"
        f"   RealMemory={hardware.memory_gib * 1000} AllocMem=0 Sockets={hardware.cpu.sockets}\n"
        f"   State={slurm.state} ThreadsPerCore={hardware.cpu.threads} TmpDisk=0 Weight=1\n"
        f"   Partitions={slurm.partition} \n"
        + (f"   Reason={slurm.reason} [root@2026-01-12T09:00:00]\n" if slurm.reason else "")
    )
    yield f"{DATA}/scontrol/node", File(node + "\n")
    jobs = "".join(
        f"{job.id}\t{job.user}\t{job.state}\t{job.gres}\t{slurm.partition}\t{hardware.name}\n"
        for job in slurm.jobs
    )
    yield f"{DATA}/squeue/jobs", File(jobs)
    epilog = "Epilog=/etc/slurm/epilog.d/*\n" if slurm.epilog else ""
    yield "/etc/slurm/slurm.conf", File(f"ClusterName=practice\n{epilog}")
    if slurm.epilog:
        yield "/etc/slurm/epilog.d/50-exclusive-gpu", File(slurm.epilog, 0o755)
