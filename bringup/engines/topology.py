"""Argue for a topology: copies, tensor parallel, or prefill and decode apart. Pure.

Four variables decide: the prefill share of the work, how tight the latency goal is, how many GPUs
there are, and what KV transfer costs against what it saves. Each gives an argument with its
evidence and the published figure it leans on; the advice says what would change its mind.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from ..core.errors import UsageError
from ..core.version import within
from .topology_load import (
    B200,
    BUZZ,
    TIGHT_MS,
    Argument,
    Topology,
    Workload,
    first_token,
    latency,
    possible,
    prefill_share,
    traffic,
)
from .topology_measured import STRONG, Trials, measured


class Link(Enum):
    """What KV cache would travel over from prefill to decode."""

    NVLINK = "NVLink"  # both on one host
    RDMA = "RDMA"
    TCP = "TCP"  # hosts without RDMA between them
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Hardware:
    """What there is. Memory in GiB a GPU; `link` joins hosts, GPUs of one host have NVLink."""

    hosts: int
    gpus_per_host: int
    memory_gib: float
    link: Link = Link.UNKNOWN

    @property
    def gpus(self) -> int:
        return self.hosts * self.gpus_per_host


@dataclass(frozen=True, slots=True)
class Subject:
    """The model: weights in GiB, kind, and the engine with its version that is to serve it."""

    weights_gib: float
    mixture_of_experts: bool = False
    engine: str = ""
    engine_version: str = ""
    kv_bytes_per_token: float | None = None


@dataclass(frozen=True, slots=True)
class Witness:
    """Another tool's answer, such as aiconfigurator's."""

    name: str
    leans: Topology | None
    said: str


@dataclass(frozen=True, slots=True)
class Advice:
    """What to serve with, why, what speaks against it, and what would change this."""

    choice: Topology
    size: int  # copies, or GPUs of one instance, or GPUs of each side
    arguments: tuple[Argument, ...]
    changes: tuple[str, ...]
    witness: Witness | None = None
    knobs: dict[str, int] = field(default_factory=dict)

    @property
    def headline(self) -> str:
        """One line: the choice and its size."""
        if self.choice is Topology.COPIES:
            each = self.knobs["data_parallel"]
            workers = "" if each == self.size else f" in {self.size // each} workers"
            return f"{self.size} copies{workers} (data_parallel: {each})"
        if self.choice is Topology.TENSOR:
            return f"tensor parallel over {self.size} GPUs (tensor_parallel: {self.size})"
        return f"prefill and decode apart, {_gpus_text(self.size)} a worker"


def _gpus_text(count: int) -> str:
    return f"{count} GPU" if count == 1 else f"{count} GPUs"


USABLE = 0.9  # of GPU memory
FEW_GPUS = 4
BAR = 100  # the weight of what cannot be: no argument outweighs it


def advise(
    hardware: Hardware,
    subject: Subject,
    workload: Workload,
    witness: Witness | None = None,
    trials: Trials | None = None,
) -> Advice:
    """Return the advice for a model's traffic on this hardware.

    `trials` are what was measured on such GPUs: with the same image they decide.

    Raises UsageError where nobody could count the GPUs or read their memory, and for traffic that
    cannot be.
    """
    possible(workload)
    if hardware.gpus < 1 or hardware.memory_gib <= 0:
        raise UsageError("cannot argue: the GPUs of a host are not known", remedy="probe it first")
    need = gpus_needed(hardware, subject)
    arguments = (
        *measured(trials, workload),
        prefill_share(workload),
        latency(workload),
        _gpus(hardware, subject, need),
        _transfer(hardware, workload, subject, need),
        *traffic(workload),
        *first_token(workload),
        *_bars(hardware, subject, need),
    )
    choice = _choice(arguments, hardware, subject, need, _dead(trials))
    changes = tuple(_changes(choice, hardware, workload, need, arguments))
    size = {
        Topology.COPIES: hardware.gpus // need,
        Topology.TENSOR: _tensor_size(hardware, need),
        Topology.PAIR: max(need, _half(hardware)),
    }[choice]
    return Advice(
        choice, size, arguments, changes, witness,
        _knobs(choice, size, hardware.gpus_per_host // need),
    )  # fmt: skip


def gpus_needed(hardware: Hardware, subject: Subject) -> int:
    """Return the smallest power of two of GPUs that holds one instance of the model."""
    least = subject.weights_gib / (hardware.memory_gib * USABLE)
    return int(2 ** math.ceil(math.log2(max(1.0, least))))


def _half(hardware: Hardware) -> int:
    """GPUs of one side of a pair: a host each where there are hosts, else half of one."""
    return hardware.gpus_per_host if hardware.hosts > 1 else hardware.gpus_per_host // 2


def _tensor_size(hardware: Hardware, need: int) -> int:
    return max(need, hardware.gpus_per_host)


def _knobs(choice: Topology, size: int, copies_per_host: int) -> dict[str, int]:
    """Copies of one host share a worker; a copy on another host is a worker of its own."""
    copies = min(size, max(1, copies_per_host))
    return {Topology.COPIES: {"data_parallel": copies}}.get(choice, {"tensor_parallel": size})


def _gpus(hardware: Hardware, subject: Subject, need: int) -> Argument:
    said = (
        f"{hardware.gpus} GPUs of {hardware.memory_gib:.0f} GiB; an instance of "
        f"{subject.weights_gib:.0f} GiB takes {_gpus_text(need)}"
    )
    if hardware.gpus <= FEW_GPUS and need == 1:
        return Argument("GPUs", Topology.COPIES, 2, said, BUZZ)
    if hardware.gpus // need >= 4 or need >= 8:
        figure = "DeepSeek: 5.2× decode throughput, 4 prefill and 9 to 18 decode nodes"
        return Argument("GPUs", Topology.PAIR, 1, said, figure)
    return Argument("GPUs", Topology.TENSOR if need > 1 else Topology.COPIES, 1, said)


def _transfer(hardware: Hardware, workload: Workload, subject: Subject, need: int) -> Argument:
    link = _link(hardware, need)
    said = f"KV would go over {link.value}"
    if subject.kv_bytes_per_token:
        size = subject.kv_bytes_per_token * workload.input_tokens / 1024**3
        said += f", {size:.1f} GiB a prompt"
    if link is Link.TCP:
        return Argument("KV transfer", Topology.COPIES, BAR // 2, said,
                        "1,800 ms a transfer over TCP against 0.16 ms (dynamo#1314)")  # fmt: skip
    if link is Link.UNKNOWN:
        return Argument("KV transfer", None, 0, said + ": probe the hosts first")
    figure = "Mooncake: up to 525 % in simulation with RDMA up to 800 Gb/s (arXiv 2407.00079)"
    return Argument("KV transfer", None, 0, said, figure)


def _link(hardware: Hardware, need: int) -> Link:
    """A pair that fits one host stays on it."""
    fits_one = hardware.hosts == 1 and hardware.gpus_per_host >= 2 * need
    return Link.NVLINK if fits_one else hardware.link


def _bars(hardware: Hardware, subject: Subject, need: int) -> Iterator[Argument]:
    """Yield what rules a topology out, as an argument for another one."""
    if hardware.gpus < need:
        said = f"{need} GPUs are needed and {hardware.gpus} are there"
        yield Argument("fit", None, 0, said)
    if hardware.gpus < 2 * need:
        yield Argument("fit", Topology.TENSOR, BAR, "only one instance fits: nothing to split")
    if _copies_die(subject):
        said = f"a mixture of experts in copies dies at start on vLLM {subject.engine_version}"
        yield Argument("engine", Topology.TENSOR, BAR // 2, said, f"{B200}: two attempts, gemma-4")
    if need > hardware.gpus_per_host and hardware.link is Link.TCP:
        yield Argument("fit", None, 0, "one instance spans hosts without RDMA: it will be slow")


def _copies_die(subject: Subject) -> bool:
    return (
        subject.mixture_of_experts
        and "vllm" in subject.engine
        and within(subject.engine_version, "0.24.0", "0.25.0") is True
    )


def _dead(trials: Trials | None) -> frozenset[Topology]:
    """Return the topologies that did not serve with the very image."""
    if trials is None or not trials.same_image:
        return frozenset()
    return frozenset(one.topology for one in trials.trials if one.output_tokens_s is None)


def _choice(
    arguments: tuple[Argument, ...],
    hardware: Hardware,
    subject: Subject,
    need: int,
    dead: frozenset[Topology],
) -> Topology:
    score = dict.fromkeys(Topology, 0)
    for argument in arguments:
        if argument.leans is not None:
            score[argument.leans] += argument.weight
    if score[Topology.TENSOR] >= BAR:
        return Topology.TENSOR
    if decided := next((a.leans for a in arguments if a.weight == STRONG), None):
        return decided
    no_copies = _copies_die(subject) or Topology.COPIES in dead or hardware.gpus < 2 * need
    together = Topology.TENSOR if no_copies else Topology.COPIES
    against = score[Topology.COPIES] + score[Topology.TENSOR] % (BAR // 2)
    apart = score[Topology.PAIR] > against and Topology.PAIR not in dead
    return Topology.PAIR if apart else together


def _changes(
    choice: Topology,
    hardware: Hardware,
    workload: Workload,
    need: int,
    arguments: tuple[Argument, ...],
) -> Iterator[str]:
    """Yield what would turn this advice."""
    if choice is Topology.PAIR:
        yield "a loose goal for the gap between tokens: copies then give more output"
        yield "no RDMA between the two sides: KV over TCP costs more than it saves"
        yield "output that outweighs the prompts"
    else:
        if workload.token_gap_ms is None:
            yield f"a goal of {TIGHT_MS:g} ms or less between tokens under long prompts"
        if hardware.gpus < 4 * need:
            yield f"{4 * need} GPUs or more: one side can then be sized by its own load"
        if workload.prefill_tokens_s is None:
            yield "a measured prefill rate: it tells how long a prompt stalls the streams"
    if not any(argument.weight == STRONG for argument in arguments):
        yield "your own measurement, with your own lengths: bringup bench.topologies"


_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_CHOSEN = re.compile(r"Best Experiment Chosen: *(agg|disagg)\b(.*)")


def aiconfigurator(output: str) -> Witness | None:
    """Return aiconfigurator's verdict from what its command line printed, or None without one."""
    found = _CHOSEN.search(_ANSI.sub("", output))
    if found is None:
        return None
    leans = Topology.PAIR if found[1] == "disagg" else Topology.COPIES
    return Witness("aiconfigurator", leans, f"{found[1]}{found[2]}".strip())
