"""GPU-19 to GPU-23: errors in the log, other users, proof that CUDA runs, and the model's fit."""

from __future__ import annotations

import re

from ..core.reading import Absent, Known
from ..core.rules import Level, Row, Seen, World, failed, passed, skipped, warned
from ..probes.confidential import ConfidentialComputing
from ..probes.gpu import Gpu, Process
from ..probes.kernel_log import KernelLog, Xid
from ..probes.memory import Memory
from ..probes.proof import ERRORS, CudaProof
from . import where
from .judging import gpus_of, loss, named, not_told, of_gpus, unread, uptime_s
from .xids import Action, action_of, meaning_of

RECENT_S = 2 * 3600  # gpud's window
IDLE_MIB = 15  # gcm's limit for a GPU that nobody uses
LEAK_MIB = 1024  # our own limit: less may be the driver's
GPUD = "https://github.com/leptonai/gpud"

OURS = re.compile(r"vllm|sglang|dynamo|VLLM::|trtllm", re.IGNORECASE)
SERVICES = re.compile(r"nv-hostengine|dcgm|nvidia-persistenced|Xorg|gnome-shell|nvsm|\bX\b")


def _xids(world: World) -> Seen:
    reading = world.facts[KernelLog]
    if not isinstance(reading, Known):
        return unread(reading)
    if torn := [e for e in reading.value.switch_errors if ", Fatal," in e.line]:
        return failed(*_lines(torn), remedy=f"drain, then power-cycle the host: {SWITCH}")
    if reading.value.xids is None:
        return _switches(reading.value.switch_errors) or not_told("XIDs in the kernel log")
    uptime = uptime_s(world)
    seen = [(xid, action_of(xid.code, xid.line)) for xid in reading.value.xids]
    fatal = [xid for xid, action in seen if action.is_fatal]
    recent = [xid for xid in fatal if _is_recent(xid, uptime)]
    if recent:
        bad = {xid.bus_id for xid in recent}
        return failed(*_lines(recent), level=loss(world, bad), remedy=_remedy(recent))
    if fatal:
        return warned(*_lines(fatal), remedy=_remedy(fatal))
    watch = [xid for xid, action in seen if action is Action.WATCH]
    if watch:
        return warned(*_lines(watch), remedy=_remedy(watch))
    rest = [xid for xid, action in seen if action is Action.APPLICATION]
    if rest:
        return warned(*_lines(rest), level=Level.NOTE, remedy=_remedy(rest))
    return _switches(reading.value.switch_errors) or passed("no XID asks for anything")


SWITCH = "an NVSwitch lost a link or its state, and every GPU behind it with it"


def _switches(errors: tuple[Xid, ...]) -> Seen | None:
    """Judge errors of NVSwitches that jobs survive."""
    if not errors:
        return None
    remedy = "nothing at once; where they go on: nvidia-smi nvlink -e, then call service"
    return warned(*_lines(list(errors)), level=Level.NOTE, remedy=remedy)


def _is_recent(xid: Xid, uptime: int | None) -> bool:
    """Without a time on both sides an error counts as recent."""
    return xid.at_s is None or uptime is None or uptime - xid.at_s <= RECENT_S


def _lines(xids: list[Xid]) -> tuple[str, ...]:
    """Return the last line of each code and GPU, newest last, at most four."""
    last = {(xid.code, xid.bus_id): xid.line for xid in xids}
    return tuple(last.values())[-4:]


def _remedy(xids: list[Xid]) -> str:
    gravest = max(xids, key=lambda x: list(Action).index(action_of(x.code, x.line)))
    return f"{meaning_of(gravest.code)}: {action_of(gravest.code, gravest.line).value}"


def _idle(world: World) -> Seen:
    return of_gpus(world, lambda gpu: _use(world, gpu), fine="no GPU is in use")


def _use(world: World, gpu: Gpu) -> Seen | None:
    used = gpu.memory_used_mib
    mine = [p for p in gpu.processes or () if OURS.search(p.name)]
    foreign = [p for p in gpu.processes or () if p not in mine and not SERVICES.search(p.name)]
    if foreign:
        others = {g.index for g in gpus_of(world) if g.processes}
        return failed(*(_shown(process) for process in foreign[:3]), level=loss(world, others))
    if mine:
        return warned(*(_shown(process) for process in mine[:2]), level=Level.NOTE)
    if used is None:
        return None if gpu.processes is None else passed()
    if used <= IDLE_MIB or (used <= LEAK_MIB and gpu.processes is None):
        return passed()
    what = "and no process is listed" if gpu.processes is not None else "by whom was not told"
    if used <= LEAK_MIB:
        return warned(f"{used} MiB in use {what}", level=Level.NOTE)
    busy = {g.index for g in gpus_of(world) if (g.memory_used_mib or 0) > LEAK_MIB}
    return failed(f"{used} MiB in use {what}", level=loss(world, busy))


def _shown(process: Process) -> str:
    size = f", {process.memory_mib} MiB" if process.memory_mib is not None else ""
    return f"{process.name or 'a process'} (PID {process.pid}{size})"


def _hmm(world: World) -> Seen:
    reading = world.facts[KernelLog]
    if not isinstance(reading, Known):
        return unread(reading)
    lines = reading.value.complaints
    if lines is None:
        return not_told("the kernel log")
    found = [line for line in lines if "devmem_alloc_pagemap" in line and "err" in line.lower()]
    if not found:
        return passed("no complaint of the UVM driver")
    proof = world.facts[CudaProof]
    works = isinstance(proof, Known) and proof.value.code == 0
    return failed(found[-1], level=Level.WARN if works else Level.BLOCK)


def _locked(world: World) -> Seen | None:
    """Return the failure of GPUs that confidential computing keeps from taking work."""
    reading = world.facts[ConfidentialComputing]
    if not isinstance(reading, Known) or reading.value.is_on is False:
        return None
    if reading.value.is_ready is not False:
        return None
    return failed(
        reading.evidence,
        "confidential computing lets no program start CUDA until the GPUs are set ready",
        remedy="attest the GPUs, then as root: nvidia-smi conf-compute -srs 1",
    )


def _cuda(world: World) -> Seen:
    reading = world.facts[CudaProof]
    starts = isinstance(reading, Known) and reading.value.code == 0
    if (locked := _locked(world)) and not starts:
        return locked
    if isinstance(reading, Absent):
        return failed(reading.evidence) if gpus_of(world) else unread(reading)
    if not isinstance(reading, Known):
        return unread(reading, essential=reading.why == "timed out")
    proof = reading.value
    count = len(gpus_of(world))
    if proof.code != 0:
        what = ERRORS.get(proof.code, "see cuda.h")
        level = Level.WARN if proof.where not in ("", "host") else Level.BLOCK
        return failed(f"{proof.line or 'cuInit'}: error {proof.code}, {what}", level=level,
                      remedy=_cure(proof.code))  # fmt: skip
    if proof.devices is not None and count and proof.devices < count:
        return failed(f"CUDA counts {proof.devices} of {count} GPUs (CUDA_VISIBLE_DEVICES?)",
                      level=loss(world, range(count - proof.devices)))  # fmt: skip
    return passed(proof.line or "cuInit answers 0")


def _cure(code: int) -> str:
    return {
        802: "the fabric is not ready: see FAB-01 to FAB-04, then systemctl restart "
        "nvidia-fabricmanager",
        803: "driver and library differ: see GPU-05",
        35: "the driver is older than the CUDA of the program: see JIT-04",
        209: "the program has no code for this GPU: see JIT-05",
        999: "modprobe nvidia_uvm; if that does not help, drain and reboot",
    }.get(code, "")


def _fits(world: World) -> Seen:
    deployment, gpus = world.deployment, gpus_of(world)
    if (unified := _unified(world)) is not None:
        return unified
    if deployment is None or deployment.model.weights_gib is None:
        return skipped("no model with a stated size is to be served here")
    sizes = [gpu.memory_mib for gpu in gpus if gpu.memory_mib]
    if not sizes or len(sizes) < len(gpus):
        return not_told("memory of all GPUs")
    fraction = where.said(world, "memory_fraction")
    share = float(fraction) if isinstance(fraction, int | float) else 0.9
    hosts = max((len(w) for w in world.role.workers), default=1) if world.role else 1
    room = sum(sizes) / 1024 * share * hosts
    need = deployment.model.weights_gib
    line = f"{need:.0f} GiB of weights, {room:.0f} GiB of GPU memory at {share:.2f}"
    if room < need:
        return failed(line)
    return warned(line) if room < need * 1.1 else passed(line)


def _unified(world: World) -> Seen | None:
    """Judge boards that share the processor's memory: N/A is by design, and the rest is host's."""
    gpus = [gpu for gpu in gpus_of(world) if "memory_mib" in gpu.not_supported]
    if not gpus:
        return None
    memory = world.facts[Memory]
    room = (
        f"{memory.value.available_mib / 1024:.1f} of {memory.value.total_mib / 1024:.1f} GiB of "
        "system memory are available"
        if isinstance(memory, Known)
        else "system memory was not read"
    )
    return warned(
        f"{named(gpus[0])} {gpus[0].name}: memory is not told by design (shared with the "
        "processor)",
        room,
        remedy="plan with available system memory and a low memory_fraction (0.6 or less)",
    )


ROWS: tuple[Row[World], ...] = (
    Row(
        "GPU-19",
        "The driver reported no grave error",
        _xids,
        reason="an XID names what went wrong before anything else shows it; those of the last "
        "2 h count as present",
        source="https://docs.nvidia.com/deploy/xid-errors/",
    ),
    Row(
        "GPU-20",
        "Nobody else uses the GPUs",
        _idle,
        reason="memory that another process holds is missing in the KV cache; memory without a "
        "process was leaked (up to 15 MiB are the driver's own; our limit for a leak is 1 GiB)",
        source="https://github.com/facebookresearch/gcm",
        remedy="find the owner (ps -o user,cmd -p PID; squeue -w HOST) and ask; if nobody owns it, "
        "nvidia-smi --gpu-reset",
    ),
    Row(
        "GPU-21",
        "The UVM driver does not complain",
        _hmm,
        reason="with kernel address randomisation, mapping device memory can fail at start",
        source="https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/",
        remedy="echo 'options nvidia_uvm uvm_disable_hmm=1' > /etc/modprobe.d/uvm-hmm.conf; reboot",
    ),
    Row(
        "GPU-22",
        "CUDA starts",
        _cuda,
        reason="nvidia-smi can look sound while every CUDA program fails",
        source="https://github.com/NVIDIA/gpu-operator/issues/2781",
        remedy="see GPU-02, GPU-07 and FAB-01",
    ),
    Row(
        "GPU-23",
        "The model fits the GPUs",
        _fits,
        reason="weights that do not fit fail after minutes of loading; 10 % to spare is our own "
        "limit",
        source="https://github.com/vllm-project/recipes",
        remedy="serve on more GPUs or hosts, or in another precision",
    ),
)
