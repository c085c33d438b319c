"""Remedies for SLU: a node that Slurm gives to nobody else while a worker runs on it."""

from __future__ import annotations

from ..core.reading import Known
from ..core.rules import World
from ..core.steps import Step
from ..probes.slurm import Slurm
from ..steps.slurm import reserve_step
from .remedy import Remedy


def _reserve(world: World) -> tuple[Step, ...]:
    reading = world.facts[Slurm]
    node = reading.value.node if isinstance(reading, Known) else reading
    return (reserve_step(node.value.name),) if isinstance(node, Known) else ()


def while_jobs_run(world: World) -> str:
    """Say which jobs run on the node, "" where surely none does."""
    reading = world.facts[Slurm]
    jobs = reading.value.jobs if isinstance(reading, Known) else reading
    if not isinstance(jobs, Known):
        return "whether jobs run here is not known"
    names = ", ".join(f"job {job.id} of {job.user}" for job in jobs.value[:3])
    return f"needs drain: {names} must end first" if names else ""


ROWS: tuple[Remedy, ...] = (
    Remedy(
        "SLU-01", "reserve the node in Slurm for 30 days", _reserve, 1,
        cost="jobs that wait for this node go elsewhere", unless=while_jobs_run,
        only_named="it changes what Slurm schedules: name it by --fix-only",
    ),
)  # fmt: skip
