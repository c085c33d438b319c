"""STO-01 to STO-07: are the weights there, whole, near, and the same as on the other hosts?"""

from __future__ import annotations

import re

from ..core.reading import Absent, Known, Unknown
from ..core.rules import Level, Row, Seen, World, failed, passed, skipped, warned
from ..probes.container import EngineDisk
from ..probes.kernel_log import KernelLog
from ..probes.model import UNFINISHED, WEIGHTS, ModelConfig, ModelFolder, ReadSpeed
from ..probes.storage import Arrays, Disks, Mount, Mounts
from . import where
from .judging import SOFT, not_told, unread

OWN = "docs/checks.md#storage"
GPUD = "https://github.com/leptonai/gpud"
LEAST_MIB = 500  # gpud
SHARE = 0.10
POINTER_BYTES = 1024  # a git-lfs pointer has some 130 bytes, a shard millions


def _mount(world: World) -> Seen:
    if world.deployment is None:
        return skipped("no deployment names a model")
    path = world.deployment.model.path
    folder, mounts = world.facts[ModelFolder], world.facts[Mounts]
    if isinstance(folder, Absent):
        look = f"where it is a mount, mount it (ls -ld {path}; mount | grep ' /'); else"
        return failed(folder.evidence, remedy=f"{look} {_copy(world)}")
    if isinstance(folder, Unknown) and folder.why == "timed out":
        return failed(f"{path} does not answer: a stale network mount", remedy=_remount(path))
    if not isinstance(mounts, Known):
        return unread(mounts)
    real = folder.value.real if isinstance(folder, Known) and folder.value.real else path
    mount = mounts.value.of(real)
    return not_told(f"the filesystem of {path}") if mount is None else _kind(path, mount)


def _remount(path: str) -> str:
    return f"umount -fl MOUNT && mount MOUNT, then: timeout 5 ls {path}"


def _kind(path: str, mount: Mount) -> Seen:
    line = f"{path} lies on {mount.path} ({mount.kind})"
    if mount.is_memory:
        return warned(line, "weights in memory leave less for the cache", level=Level.NOTE)
    if mount.is_network:
        return warned(line, "loading takes as long as the network needs")
    return passed(line)


def _arrays(world: World) -> Seen:
    reading = world.facts[Arrays]
    if isinstance(reading, Absent):
        return skipped("no software arrays")
    if isinstance(reading, Unknown):
        return unread(reading)
    arrays = reading.value.arrays
    short = [a for a in arrays if not a.is_active or (a.members or 0) < (a.wanted or 0)]
    if short:
        return failed(*(f"{a.name} {a.level}: {a.members} of {a.wanted} members" for a in short))
    busy = [array for array in arrays if array.doing]
    if busy:
        return warned(*(f"{a.name}: {a.doing} is under way" for a in busy), level=Level.NOTE)
    return passed(reading.evidence)


def _space(world: World) -> Seen:
    reading, engine = world.facts[Disks], world.facts[EngineDisk]
    if frozen := _frozen(world):
        return failed(frozen, remedy="dmesg | tail; drain, check the disk, fsck, reboot")
    if not isinstance(reading, Known):
        return unread(reading)
    spent = [disk.path for disk in reading.value.disks if disk.is_out_of_inodes]
    if spent:
        lines = (f"{path}: no inode is free, so no file can be made" for path in spent)
        return failed(*lines, remedy="df -i; du --inodes -xd1 PATH; delete what is many and small")
    told = [(d.path, d.free_mib, d.total_mib) for d in reading.value.disks]
    if isinstance(engine, Known):
        told.append((engine.value.path, engine.value.free_mib, engine.value.total_mib))
    known = [(path, free, total) for path, free, total in told if free is not None and total]
    if not known:
        return not_told("free space")
    full = {path: f"{path}: {free} MiB free" for path, free, _ in known if free < LEAST_MIB}
    low = [
        f"{path}: {free // 1024} GiB free, {free / total:.0%}"
        for path, free, total in known
        if free / total < SHARE
    ]
    if full:
        model = world.deployment.model.path if world.deployment else ""
        return failed(*full.values(), level=Level.WARN if set(full) == {model} else Level.BLOCK)
    return warned(*low, level=Level.NOTE) if low else passed(reading.evidence)


def _frozen(world: World) -> str:
    """Return the kernel's line about a filesystem that it no longer writes to after an error."""
    log = world.facts[KernelLog]
    lines = log.value.complaints or () if isinstance(log, Known) else ()
    return next((line for line in lines if "Remounting filesystem read-only" in line), "")


def _complete(world: World) -> Seen:
    reading = world.facts[ModelFolder]
    if world.deployment is None and not isinstance(reading, Known):
        return skipped("no deployment names a model")
    if isinstance(reading, Absent):
        return failed(reading.evidence, remedy=_copy(world))
    if isinstance(reading, Unknown):
        return unread(reading, essential=True)
    trouble = _missing(reading.value)
    if trouble:
        return failed(*trouble, remedy=_copy(world, reading.value.path))
    unfinished = [name for name in reading.value.files if name.endswith(UNFINISHED)]
    if unfinished:
        return warned(f"left over from a download: {' '.join(unfinished[:3])}", level=Level.NOTE)
    return passed(reading.evidence)


def _copy(world: World, path: str = "") -> str:
    """Return the command that brings what is missing: from a host of the deployment that has it."""
    host = world.host.name
    if world.deployment is not None and path in ("", world.deployment.model.path):
        return f"bringup weights.sync --deployment {world.deployment.name} --host {host}"
    return f"bringup weights.sync --from OTHER:{path} --to {host}:{path}"


def _gaps(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names such as model-00002-of-00004 tell how many there should be."""
    numbered = [match for name in names if (match := _NUMBERED.search(name))]
    wanted = max((int(match[2]) for match in numbered), default=0)
    have = {int(match[1]) for match in numbered}
    if len(have) < 2 or len(have) >= wanted:
        return ()
    first = next(number for number in range(1, wanted + 1) if number not in have)
    return (f"{wanted - len(have)} of {wanted} shards are missing: number {first}, …",)


def _begun(folder: ModelFolder) -> list[str]:
    """Return shards of which only a begun download is there."""
    begun = (name.rpartition(".")[0] for name in folder.files if name.endswith(UNFINISHED))
    return [name for name in begun if name.endswith(WEIGHTS) and name not in folder.files]


_NUMBERED = re.compile(r"-(\d{5})-of-(\d{5})\.")


def _missing(folder: ModelFolder) -> tuple[str, ...]:
    """Return what is wrong with the weights: files that lack, are pointers, or are too short."""
    if not folder.shards and not folder.weights:
        return (f"{folder.path} holds no weight file ({', '.join(WEIGHTS[:2])}, …)",)
    gone = [name for name in folder.shards if name not in folder.files]
    if gone:
        return (f"{len(gone)} of {len(folder.shards)} shards are missing: {gone[0]}, …",)
    if lost := _gaps(tuple(folder.weights)):
        return lost
    if begun := _begun(folder):
        return (f"the download of {begun[0]} was not finished",)
    if not folder.is_sized:
        return ()
    wanted = folder.shards or tuple(folder.weights)
    small = [name for name in wanted if folder.files[name] < POINTER_BYTES]
    if small:
        return (f"{small[0]} has {folder.files[small[0]]} bytes: a git-lfs pointer or a stub",)
    if folder.tensor_bytes and folder.weight_bytes < folder.tensor_bytes:
        short = folder.tensor_bytes - folder.weight_bytes
        return (f"shards are {short} bytes short of what the index says: one is cut off",)
    return ()


def _speed(world: World) -> Seen:
    reading, folder = world.facts[ReadSpeed], world.facts[ModelFolder]
    if not isinstance(reading, Known):
        return unread(reading)
    line = f"{reading.value.mb_s:.0f} MB/s"
    if not isinstance(folder, Known):
        return passed(line)
    seconds = folder.value.weight_bytes / 1e6 / reading.value.mb_s
    budget = where.number(world, "ready_timeout_s", 600)
    said = f"{line}: {seconds:.0f} s for the weights, the ready budget is {budget} s"
    if seconds < budget / 3:
        return passed(said)
    return warned(said, decide={"ready_timeout_s": max(budget, int(seconds * 3))})


TOKENIZERS = ("tokenizer.json", "tiktoken.model", "tokenizer.model", "tekken.json", "vocab.json")


def _tokenizer(world: World) -> Seen:
    reading = world.facts[ModelFolder]
    if world.deployment is None and not isinstance(reading, Known):
        return skipped("no deployment names a model")
    if not isinstance(reading, Known):
        return unread(reading)
    files = reading.value.files
    if "config.json" not in files:
        return failed("no config.json")
    if not any(name in TOKENIZERS or name.endswith(".tiktoken") for name in files):
        return failed("no tokenizer.json, tiktoken.model or tokenizer.model")
    if "tokenizer_config.json" not in files:
        return failed("no tokenizer_config.json")
    if "generation_config.json" not in files:
        return warned("no generation_config.json", level=Level.NOTE)
    small = len(reading.value.sums)
    return passed(f"{small} small files beside the weights")


def _identity(world: World) -> Seen:
    reading, deployment = world.facts[ModelConfig], world.deployment
    if deployment is None:
        return skipped("no deployment names a model")
    if not isinstance(reading, Known):
        return unread(reading)
    want = deployment.model.architecture
    if want and reading.value.model_type != want:
        return failed(f"config.json says {reading.value.model_type}, the deployment {want}")
    return passed(reading.evidence)


ROWS: tuple[Row[World], ...] = (
    Row(
        "STO-01", "The model folder answers, on a local disk", _mount,
        "weights over a network load slowly, and a stale mount hangs the worker at start",
        "https://docs.kernel.org/filesystems/nfs/index.html",
        "copy the weights to a local NVMe disk, or allow a longer ready_timeout_s",
    ),
    Row(
        "STO-02", "Disk arrays are whole", _arrays,
        "a degraded array reads slowly and loses the weights with the next disk",
        "https://docs.kernel.org/admin-guide/md.html",
        "cat /proc/mdstat; replace the disk: mdadm ARRAY --add DISK", SOFT,
    ),
    Row(
        "STO-03", "Disks have room", _space,
        "a full disk ends the engine at its first log line or cache file",
        GPUD, "df -h; du -xsh /var/log /var/lib/docker",
    ),
    Row(
        "STO-04", "All weights are there", _complete,
        "a missing or cut shard shows only after minutes of loading",
        "https://huggingface.co/docs/safetensors/metadata_parsing",
    ),
    Row(
        "STO-05", "Weights are read fast enough for the ready budget", _speed,
        "loading that takes more than a third of the budget leaves too little for compilation",
        OWN, "move the weights to local NVMe", SOFT,
    ),
    Row(
        "STO-06", "Configuration and tokenizer are complete", _tokenizer,
        "workers register, and the model list stays empty, when the frontend cannot read these "
        "files at the worker's path",
        "https://github.com/ai-dynamo/dynamo/issues/10805",
        "copy the small files anew; then give the frontend the same ones: bringup bundle", SOFT,
    ),
    Row(
        "STO-07", "The folder holds the model that the deployment names", _identity,
        "prefill and decode with different models exchange caches that mean nothing",
        OWN, "correct model.path or model.architecture in the deployment", SOFT,
    ),
)  # fmt: skip
