"""SLU-01 to SLU-06: a worker beside Slurm, which does not know that our GPUs are taken."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from ..core.reading import Absent, Known, Reading, Unknown
from ..core.rules import Level, Row, Seen, World, failed, passed, skipped, warned
from ..probes.clock import Clock
from ..probes.containers import Containers
from ..probes.slurm import GpuOwner, GpuOwners, Job, Slurm, SlurmNode, SshDevices
from ..probes.slurm_hooks import Danger, SlurmHooks
from .checks_gpu_use import OURS, SERVICES
from .judging import QUIET, SOFT, loss, not_told, unread

DEEPOPS = "https://github.com/NVIDIA/deepops/issues/1315"
TAKE = "bringup slurm.take --host {host} --reason TICKET"
"""Reserves the node and waits for its jobs; with --drain it drains instead."""

OFF = re.compile(r"DRAIN|MAINT|RESERVED|DOWN|FUTURE|POWER")
KILLS = re.compile(
    r"\b(?:p|s)?kill(?:all)?\b(?! -0)|pmon|query-compute-apps|docker|podman|nerdctl|crictl"
    r"|gpu-reset|smi.* -(?:r|mig)\b|\bfuser .*-[a-z]*k|terminate-(?:user|session)|cgdelete"
    r"|cgroup.*rmdir|rmdir.*cgroup|cgroup\.kill|\brmmod|modprobe .*-r|\breboot|\bshutdown"
    r"|systemctl .*(?:stop|restart).*(?:containerd|nvidia)"
)
"""Lines that may end a worker or take its GPU away, whoever owns it."""


def _node(world: World) -> Reading[SlurmNode]:
    reading = world.facts[Slurm]
    return reading.value.node if isinstance(reading, Known) else reading


def _jobs(world: World) -> tuple[Job, ...]:
    reading = world.facts[Slurm]
    jobs = reading.value.jobs if isinstance(reading, Known) else reading
    return jobs.value if isinstance(jobs, Known) else ()


def is_kept_free(world: World) -> bool:
    """Tell whether Slurm surely starts no job on this host: absent, or drained or reserved."""
    node = _node(world)
    return isinstance(node, Absent) or (
        isinstance(node, Known) and bool(OFF.search(node.value.state))
    )


ILL = re.compile(
    r"(?i)\bnhc\b|check_|health|xid|\becc\b|fail|error|not responding|unexpected|hung|\bhw\b"
)
"""Reasons of a drain that speak of the host itself, rather than of who wants it."""


def _role(world: World) -> Seen:
    reading = world.facts[Slurm]
    if isinstance(reading, Absent):
        return skipped("no Slurm on this host")
    if isinstance(reading, Unknown):
        return unread(reading)
    node, jobs = reading.value.node, _jobs(world)
    if isinstance(node, Absent):
        return passed(node.evidence)
    if isinstance(node, Unknown) and (jobs := running(jobs)):
        return _taken(world, (f"squeue: {len(jobs)} jobs", *_named(jobs)))
    if isinstance(node, Unknown):
        idle = reading.value.daemon in ("none", "inactive", "failed")
        return passed(f"slurmd is {reading.value.daemon}") if idle else unread(node)
    remedy = TAKE.format(host=world.host.name)
    if jobs or re.search(r"ALLOC|MIXED|COMPLETING", node.value.state):
        return _taken(world, (node.evidence, *_named(jobs)))
    if OFF.search(node.value.state):
        if ILL.search(node.value.reason):
            line = "drained for its health: see to that first"
            return warned(node.evidence, line, remedy=f"scontrol show node {node.value.name}")
        return passed(node.evidence)
    return warned(node.evidence, remedy=remedy)


def running(jobs: tuple[Job, ...]) -> tuple[Job, ...]:
    """Return the jobs that hold a part of the host, those that wait for one left out."""
    return tuple(job for job in jobs if job.state in ("R", "CG", "S", "RUNNING", "COMPLETING"))


def _named(jobs: tuple[Job, ...]) -> tuple[str, ...]:
    return tuple(f"job {job.id} of {job.user}: {job.state} {job.resources}" for job in jobs[:3])


def _taken(world: World, lines: tuple[str, ...]) -> Seen:
    level = Level.BLOCK if world.deployment else Level.WARN
    return failed(*lines, level=level, remedy=TAKE.format(host=world.host.name))


def _hooks(world: World) -> Seen:
    reading = world.facts[SlurmHooks]
    if isinstance(reading, Absent):
        return skipped("no slurm.conf on this host")
    if isinstance(reading, Unknown):
        return unread(reading)
    hooks = reading.value
    kills = [danger for danger in hooks.dangers if KILLS.search(danger.text)]
    if kills:
        level = Level.BLOCK if world.deployment and not is_kept_free(world) else Level.WARN
        return failed(*(_line(danger) for danger in kills[:4]), level=level)
    if hooks.dangers:
        return warned(*(_line(danger) for danger in hooks.dangers[:4]), level=Level.NOTE)
    if hooks.unread:
        return unread(Unknown(f"permission denied: {' '.join(hooks.unread[:3])}"))
    return passed(reading.evidence)


def _line(danger: Danger) -> str:
    return f"{danger.file}:{danger.line}: {danger.text[:120]}"


def _hidden(world: World) -> Seen:
    reading = world.facts[SshDevices]
    if isinstance(world.facts[Slurm], Absent) and not isinstance(reading, Known):
        return skipped("no Slurm on this host")
    if not isinstance(reading, Known):
        return unread(reading)
    return warned(reading.evidence) if reading.value.hides_gpus else passed(reading.evidence)


def _use(world: World) -> Seen:
    owners, jobs = world.facts[GpuOwners], _jobs(world)
    with_gpus = [job for job in jobs if "gpu" in job.resources]
    lines = [f"job {job.id} of {job.user}: {job.resources}" for job in with_gpus[:3]]
    if isinstance(owners, Absent) and not lines:
        return skipped(owners.evidence)
    foreign: list[GpuOwner] = []
    if isinstance(owners, Known):
        ours = _our_containers(world)
        foreign = [owner for owner in owners.value.owners if not _is_ours(owner, ours)]
    lines += [f"{owner.command} ({owner.pid}) of {owner.place}" for owner in foreign[:4]]
    if lines:
        whole = loss(world, lines) if world.role is not None and world.role.gpus else Level.BLOCK
        return failed(*lines, level=whole if world.deployment else Level.WARN)
    if not isinstance(owners, Known):
        return unread(owners)
    if not owners.value.is_whole:
        return not_told("processes of other users, which only root sees")
    return passed("no foreign process on a GPU")


def _our_containers(world: World) -> tuple[str, ...]:
    reading = world.facts[Containers]
    listed = reading.value.containers if isinstance(reading, Known) else ()
    return tuple(c.id[:12] for c in listed if c.labels and c.id)


def _is_ours(owner: GpuOwner, containers: tuple[str, ...]) -> bool:
    if SERVICES.search(owner.command):
        return True
    if any(container in owner.cgroup for container in containers):
        return True
    is_job = owner.place.startswith("Slurm job")
    return (
        not is_job and not owner.place.startswith("container") and bool(OURS.search(owner.command))
    )


def _health(world: World) -> Seen:
    reading = world.facts[SlurmHooks]
    if isinstance(reading, Absent):
        return skipped("no slurm.conf on this host")
    if isinstance(reading, Unknown):
        return unread(reading)
    program = reading.value.health
    if not program or program in ("/bin/true", "/usr/bin/true"):
        return passed("no HealthCheckProgram")
    return warned(f"HealthCheckProgram={program}")


def _over(world: World, reason: str) -> str:
    """Return the day until which a drain of ours was meant, "" where it has not passed."""
    clock, until = world.facts[Clock], re.search(r"\buntil (\d{4}-\d{2}-\d{2})\b", reason)
    if until is None or not isinstance(clock, Known) or clock.value.epoch_s is None:
        return ""
    today = datetime.fromtimestamp(clock.value.epoch_s, UTC).strftime("%Y-%m-%d")
    return until[1] if today > until[1] else ""


def _given_back(world: World) -> Seen:
    node = _node(world)
    if not isinstance(node, Known) or "bringup" not in node.value.reason:
        return skipped("checked when a worker is taken down")
    running = world.facts[Containers]
    if not isinstance(running, Known):
        return unread(running)
    remedy = f"bringup slurm.give --host {world.host.name}"
    if any(c.labels and c.is_running for c in running.value.containers):
        if over := _over(world, node.value.reason):
            return warned(f"our worker runs, the drain was meant until {over}", remedy=remedy)
        return passed(f"our worker runs, {node.evidence}")
    return warned(f"no worker of ours runs, but {node.evidence}", remedy=remedy)


ROWS: tuple[Row[World], ...] = (
    Row(
        "SLU-01", "Slurm gives this host to nobody else", _role,
        "Slurm does not see workers outside its control groups, and starts jobs on their GPUs",
        "https://slurm.schedmd.com/scontrol.html",
    ),
    Row(
        "SLU-02", "No hook of Slurm would end a worker", _hooks,
        "an epilog that kills what nvidia-smi lists kills our worker after anybody's job",
        DEEPOPS, "exempt our control group in that script, or keep jobs off this host", SOFT,
    ),
    Row(
        "SLU-03", "Logins over SSH see the GPUs", _hidden,
        "a site may hide GPUs from SSH sessions; 'No devices were found' is then policy, no fault",
        "https://github.com/NVIDIA/deepops", "probe as root on the host, or inside a job: srun",
    ),
    Row(
        "SLU-04", "Nobody else uses the GPUs", _use,
        "two owners of one GPU both fail for lack of memory; never kill what is not ours",
        "https://slurm.schedmd.com/gres.html", "ask the owner; or name free GPUs for the role",
    ),
    Row(
        "SLU-05", "Slurm's health check tolerates a worker", _health,
        "some health checks drain a host whose GPU memory is in use",
        "https://github.com/nebius/soperator/pull/1711", "agree on an exception with the site",
        QUIET,
    ),
    Row(
        "SLU-06", "The host was given back", _given_back,
        "a drain that outlives the worker wastes the host",
        "https://slurm.schedmd.com/scontrol.html", levels=QUIET,
    ),
)  # fmt: skip
