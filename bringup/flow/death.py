"""Say why a worker that was just started has ended already, or could not be started at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..core.errors import CommandFailed, ToolError
from ..core.reading import Known, value_of
from ..edge.catalogue import failures
from ..readiness.failures import CONSEQUENCE, Match, addressed, diagnose, last_words
from ..readiness.shown import signs_of
from ..readiness.stages import Run, Worker
from .ready import case_of
from .status import logs, status
from .targets import Target, words_of
from .types import Tools


def ended_early(
    tools: Tools, target: Target, host: str, started: Iterable[str]
) -> ToolError | None:
    """Return an error that names the cause, where a worker of a host has ended; else None.

    `started` are the names of those that should run: one that is gone has ended without a code.
    """
    wanted = set(started)
    for one in status(tools, Target(target.inventory, target.deployment, target.on(host))):
        if not isinstance(one.run, Known) or one.worker.name not in wanted:
            continue
        run = one.run.value
        if run.exit is not None or run.status == "gone":
            return _death(tools, target, one.worker, run)
    return None


def _death(tools: Tools, target: Target, worker: Worker, run: Run) -> ToolError:
    lines = value_of(logs(tools, target, [worker], 2000)[worker.key]) or ()
    how = "it is gone" if run.exit is None else f"it ended with exit code {run.exit}"
    message = f"cannot keep {worker.name} running: {how}"
    case = replace(case_of(target), signs=frozenset(signs_of(run)))
    found = _roots(diagnose(failures(), [*lines, run.error], case))
    if not found:
        said = [*last_words(lines), *([run.error] if run.error else [])]
        return ToolError(
            message, host=worker.host, step=f"start {worker.name}", said="\n".join(said),
            remedy=f"bringup serve.logs --deployment {target.deployment.name} --host {worker.host}",
        )  # fmt: skip
    title, evidence, remedy = _told(target, worker, found[0])
    return ToolError(
        f"{message}. {title}", host=worker.host, step=f"start {worker.name}", said=evidence,
        remedy=remedy,
    )  # fmt: skip


def refused_by_engine(target: Target, worker: Worker | None, error: CommandFailed) -> ToolError:
    """Return a failed start with its cause, where what the engine said names one."""
    found = _roots(diagnose(failures(), error.said, case_of(target)))
    if not found:
        return error
    title, _, remedy = _told(target, worker, found[0])
    return CommandFailed(
        f"{error.message}. {title}", host=error.host, step=error.step, said=error.said,
        remedy=remedy, ran=error.ran, exit_code=error.exit_code,
    )  # fmt: skip


def _roots(found: Iterable[Match]) -> list[Match]:
    """Leave out mere consequences; what a state alone tells comes after what was said."""
    roots = [match for match in found if match.failure.weight > CONSEQUENCE]
    return sorted(roots, key=lambda match: not match.line)


def _told(target: Target, worker: Worker | None, match: Match) -> tuple[str, str, str]:
    words = words_of(target, worker)
    remedy = f"{addressed(match.fix, words)}\n{addressed(match.command, words)}"
    return f"{match.failure.title}: {match.cause}", match.evidence, remedy
