"""How a deployment stands right now, and what its workers have said."""

from __future__ import annotations

from collections.abc import Callable

from ..core.errors import ToolError
from ..core.event import Event
from ..core.reading import Known, Reading, Unknown
from ..core.script import Ask, compose, seconds_for, split
from ..core.steps import Run as Action
from ..core.words import HostPath, Word, command, quote
from ..edge.image_store import ImageStore
from ..edge.pool import each
from ..readiness.stages import Worker
from ..readiness.worker_ask import asks, parse_run, run_name
from ..serve.standing import Standing, compared
from .targets import Target, as_written, head_ask, head_name
from .types import Tools


def status(tools: Tools, target: Target) -> tuple[Standing, ...]:
    """Return how every worker stands, in the order they start."""

    def look(name: str) -> list[Standing]:
        workers = target.on(name)
        questions = [ask for w in workers for ask in (head_ask(w), asks(w)[0])]
        nonce = tools.nonce()
        script = compose(questions, nonce=nonce, root=target.inventory.hosts[name].root)
        result = tools.fleet.remote(name).read(script, seconds=seconds_for(questions))
        answer = split(result.stdout, nonce=nonce)
        return [
            Standing(as_written(w, answer[head_name(w)]), parse_run(w, answer[run_name(w)]))
            for w in workers
        ]

    found: dict[str, Standing] = {}
    for outcome in each([host.name for host in target.hosts], look):
        if outcome.error is not None and not isinstance(outcome.error, ToolError):
            raise outcome.error
        why = outcome.error.message if isinstance(outcome.error, ToolError) else ""
        lost = [Standing(w, Unknown(why)) for w in target.on(outcome.item)] if why else []
        found |= {one.worker.key: one for one in (outcome.value or lost)}
    every = [found[worker.key] for worker in target.workers if worker.key in found]
    return compared(every, _builds(tools, target))


def _builds(tools: Tools, target: Target) -> tuple[str, ...]:
    """Return the contexts that builds of the deployment's image had, the newest first.

    Records that cannot be read tell no order, and do not keep anybody from looking at workers.
    """
    try:
        records = ImageStore(tools.store.folder).records(target.deployment.image.name)
    except ToolError:
        return ()
    return tuple(dict.fromkeys(record.context for record in records))


def logs(
    tools: Tools, target: Target, workers: list[Worker], lines: int
) -> dict[str, Reading[tuple[str, ...]]]:
    """Return the last lines of each worker's log, by its key; lines of one that is gone as well.

    Unknown where a host was not reached: what SSH says of that is no line of a log.
    """
    found: dict[str, Reading[tuple[str, ...]]] = {}

    def read(worker: Worker) -> tuple[str, ...]:
        ask = Ask("log", _last(worker, lines), 30)
        nonce = tools.nonce()
        root = target.inventory.hosts[worker.host].root
        script = compose([ask], nonce=nonce, root=root)
        result = tools.fleet.remote(worker.host).read(script, seconds=60)
        return tuple(split(result.stdout, nonce=nonce)["log"].text.splitlines())

    for outcome in each(workers, read):
        if isinstance(outcome.error, ToolError):
            found[outcome.item.key] = Unknown(outcome.error.message)
        elif outcome.error is not None:
            raise outcome.error
        else:
            found[outcome.item.key] = Known(outcome.value or ())
    return found


def _last(worker: Worker, lines: int) -> str:
    """A container's log, else the copy that is kept when it is stopped."""
    count = str(lines)
    if worker.contained:
        place = HostPath(worker.last_log)
        kept: tuple[Word, ...] = (worker.engine, worker.name, count, place, worker.unit)
        return f"set -- {command(kept)}\n{_KEPT}"
    if worker.unit:
        words = ("journalctl", "--no-pager", "--output", "cat", "--lines", count)
        return command((*words, "--unit", worker.unit))
    return f"tail -n {quote(count)} {quote(HostPath(worker.log_file))} 2>/dev/null"


_KEPT = """
if "$1" inspect --type container "$2" >/dev/null 2>&1; then "$1" logs --tail "$3" "$2" 2>&1
elif [ -n "$5" ] && ! systemctl show --property=ActiveState --value "$5" | grep -q ^inactive; then
  journalctl --no-pager --output cat --lines "$3" --unit "$5"
elif [ -r "$4" ]; then tail -n "$3" "$4"
fi
"""


def follow(tools: Tools, worker: Worker, tell: Callable[[Event], None], seconds: int) -> None:
    """Tell each new line of a worker's log as it comes, until the time is up."""
    action = Action(("sh", HostPath(worker.script), "--logs"), seconds, answers=tuple(range(256)))
    tools.fleet.remote(worker.host).run(
        action, on_line=lambda line: tell(Event(worker.key, "log", line))
    )
