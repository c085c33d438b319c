"""Say why a worker that was just started has ended already."""

from __future__ import annotations

from .core.errors import ToolError
from .core.reading import Known
from .edge.catalogue import failures
from .flow_ready import case_of
from .flow_status import logs, status
from .flow_targets import Target, words_of
from .flow_types import Tools
from .readiness.failures import addressed, diagnose, last_words
from .readiness.stages import Run, Worker


def ended_early(tools: Tools, target: Target, host: str) -> ToolError | None:
    """Return an error that names the cause, where a worker of a host has ended; else None."""
    for one in status(tools, Target(target.inventory, target.deployment, target.on(host))):
        if isinstance(one.run, Known) and one.run.value.exit is not None:
            return _death(tools, target, one.worker, one.run.value)
    return None


def _death(tools: Tools, target: Target, worker: Worker, run: Run) -> ToolError:
    lines = logs(tools, target, [worker], 2000)[worker.key]
    message = f"cannot keep {worker.name} running: it ended with exit code {run.exit}"
    found = diagnose(failures(), lines, case_of(target))
    if not found:
        return ToolError(
            message, host=worker.host, step=f"start {worker.name}",
            said="\n".join(last_words(lines)),
            remedy=f"bringup serve.logs --deployment {target.deployment.name} --host {worker.host}",
        )  # fmt: skip
    first, words = found[0], words_of(target, worker)
    return ToolError(
        f"{message}. {first.failure.title}: {first.failure.cause}",
        host=worker.host, step=f"start {worker.name}", said=first.evidence,
        remedy=f"{addressed(first.fix, words)}\n{addressed(first.command, words)}",
    )  # fmt: skip
