"""What a run over topologies does on its host: free GPUs, the measuring tool, logs of the dead."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ..bench.command import FOLDER, bench_words, place_of
from ..bench.result import Measured, parse
from ..bench.traffic import Traffic
from ..core.errors import CommandFailed, ToolError
from ..core.facts import read
from ..core.host import Host
from ..core.reading import Known, Reading
from ..core.remote import Remote, Result
from ..core.script import compose, seconds_for, split
from ..core.steps import Run
from ..core.words import HostPath, Word, shown
from ..engines.spec import Spec, text
from ..probes.gpu import PROBE, Gpu, Gpus
from ..readiness.stages import Worker
from ..rules.checks_gpu_use import LEAK_MIB, SERVICES
from .bench_task import Task
from .look import Looker
from .status import status
from .targets import Target, target_of
from .types import Tools

FREE_S = 120.0
"""Longest wait for GPU memory after a topology was stopped: the driver takes it back by and by."""


def gpus_now(tools: Tools, host: Host) -> Reading[Gpus]:
    """Return the GPUs of a host as they are this moment."""
    nonce = tools.nonce()
    script = compose([PROBE.ask], nonce=nonce, root=host.root)
    result = tools.fleet.remote(host.name).read(script, seconds=seconds_for([PROBE.ask]))
    return read([PROBE], split(result.stdout, nonce=nonce))[Gpus]


def users(gpu: Gpu) -> str:
    """Return who uses a GPU, "" where it is free."""
    found = [p for p in gpu.processes or () if not SERVICES.search(p.name)]
    if found:
        each = ", ".join(f"{p.name or 'a process'} (PID {p.pid})" for p in found[:3])
        return f"GPU {gpu.index}: {each}"
    if gpu.memory_used_mib is not None and gpu.memory_used_mib > LEAK_MIB:
        return f"GPU {gpu.index}: {gpu.memory_used_mib:,} MiB in use"
    return ""


def in_use(tools: Tools, host: Host, chosen: tuple[int, ...], *, wait_s: float = 0.0) -> str:
    """Return who uses the chosen GPUs, "" once they are free. Waits as long as it is told.

    Where nobody could look, that is what is said: it is not the same as free.
    """
    ends = time.monotonic() + wait_s
    while True:
        reading = gpus_now(tools, host)
        if not isinstance(reading, Known):
            why = getattr(reading, "why", "") or reading.evidence
            return f"nobody could look whether the GPUs are free: {why or 'no nvidia-smi'}"
        mine = (gpu for gpu in reading.value.gpus if gpu.index in chosen)
        taken = [said for gpu in mine if (said := users(gpu))]
        if not taken or time.monotonic() >= ends:
            return "; ".join(taken)
        time.sleep(1.0)


def ours_on(tools: Tools, task: Task) -> str:
    """Return how to stop what bringup itself runs on the host, "" where that is nothing."""
    name = task.host.name
    for deployment in task.inventory.deployments_of(name):
        target = target_of(task.inventory, deployment)
        here = Target(task.inventory, deployment, target.on(name))
        if any(one.word in ("runs", "drifted") for one in status(tools, here)):
            return (
                f"{deployment.name} runs there: bringup serve.stop --deployment {deployment.name}"
            )
    return ""


@dataclass(frozen=True, slots=True)
class Seat:
    """Where the measuring tool runs: in a worker's container, or with its environment."""

    remote: Remote
    worker: Worker
    spec: Spec

    def words(self, words: tuple[str, ...]) -> tuple[Word, ...]:
        """Return the whole command for the host."""
        if self.worker.contained:
            return (self.worker.engine, "exec", self.worker.name, *words)
        venv = text(self.spec.decisions, "venv")
        path = 'PATH=${1:+$1/bin:}$PATH; export PATH; shift; exec "$@"'
        return ("sh", "-c", path, "sh", venv, *words)

    def run(
        self, words: tuple[str, ...], seconds: int, on_line: Callable[[str], None] | None = None
    ) -> Result:
        return self.remote.run(Run(self.words(words), seconds), on_line=on_line)


def seat_of(tools: Tools, target: Target, specs: dict[str, Spec]) -> Seat:
    """Return the seat beside the worker that answers last: decode's, or the only one's."""
    every = [worker for worker in target.workers if worker.key in specs and not worker.is_front]
    return Seat(tools.fleet.remote(every[-1].host), every[-1], specs[every[-1].key])


def measure(tools: Tools, target: Target, seat: Seat, traffic: Traffic, seconds: int) -> Measured:
    """Run ``vllm bench serve`` and return what it measured.

    Raises CommandFailed where the tool ends with an error, ToolError where its file is no result.
    """
    url = Looker(target, tools.fleet.remote, tools.nonce).frontend
    file = f"{tools.nonce()}.json"
    words = bench_words(place_of(target.deployment, url), traffic, file)
    command = shown(seat.words(words))
    result = seat.run(words, seconds)
    if result.exit != 0:
        raise CommandFailed(
            f"cannot measure {traffic.name}: vllm bench serve " + _ended(result, seconds),
            ran=command, exit_code=result.exit, said=result.tail(12),
            remedy=f"run it yourself: {command}",
        )  # fmt: skip
    written = seat.run(("cat", f"{FOLDER}/{file}"), 60)
    seat.run(("rm", "-f", f"{FOLDER}/{file}"), 60)
    try:
        return parse(written.stdout, traffic, command)
    except ValueError as error:
        raise ToolError(
            f"cannot read what vllm bench serve wrote about {traffic.name}: {error}",
            said=written.tail(3) or result.tail(6), remedy=f"run it yourself: {command}",
        ) from error  # fmt: skip


def _ended(result: Result, seconds: int) -> str:
    """A command that ran out of its time ends with 124."""
    if result.exit == 124:
        return f"did not end within {seconds} s"
    return f"ended with exit code {result.exit}"


def printed(remote: Remote, worker: Worker) -> str:
    """Return the exact command that a written script starts, "" where it does not tell."""
    result = remote.run(Run(("sh", HostPath(worker.script), "--print"), 60))
    return result.stdout.strip() if result.exit == 0 else ""
