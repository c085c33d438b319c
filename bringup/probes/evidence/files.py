"""What `cat`, `ls`, `test`, `du` and `readlink` told of files, by their paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePosixPath

from ...core.reading import Absent, Known
from ...core.script import Section
from ..caches import JitCaches, cache_of
from ..container import DaemonConfig, parse_daemon
from ..driver import Driver
from ..fabric import FabricManager
from ..infiniband import InfiniBand
from ..kernel import Boot, Modules, read_lsmod
from ..model import WEIGHTS, ModelFolder
from ..rdma import RdmaNodes
from ..serving import Serving
from ..storage import Arrays, parse_mdstat
from . import containers, driver, figures, host, nodes_in_dev, rdma, slurm, sysfs, tools, units
from .asked import HOST, Asked, Output
from .loops import files_told, loop_of
from .piece import Piece, Readers, absent, known, unknown


def read_cat(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read what a file holds, by its path; what several hold where it shows which is whose."""
    if any("SW_MNG" in word for word in (asked.pattern,)) and "vpd" in asked.path:
        yield from rdma.read_vpd(output)
    each = sysfs.by_path(asked, output)
    if each is None:
        yield from _read_content(asked.path, asked, output)
        return
    for path, value in each:
        yield from _read_content(path, replace(asked, words=(path,)), Output(0, value))


def _read_content(path: str, asked: Asked, output: Output) -> Iterator[Piece]:
    for pattern, read in _CONTENTS:
        if re.search(pattern, path):
            yield from read(asked, output)
            return


def read_loop(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read a loop that prints files, where it tells which value is whose."""
    loop = loop_of(asked.words[0])
    for path, value in files_told(loop, output.stdout) if loop else ():
        if path.startswith("/sys/"):
            yield from _read_content(path, Asked("cat", (path,), asked.place), Output(0, value))


Contents = Callable[[Asked, Output], Iterator[Piece]]


def _modules(asked: Asked, output: Output) -> Iterator[Piece]:
    if not output.is_refused and not output.has_no_file:
        yield Piece(Modules, read_lsmod(output.stdout, asked.pattern))


def _mdstat(asked: Asked, output: Output) -> Iterator[Piece]:
    del asked
    yield Piece(Arrays, parse_mdstat(Section("arrays", output.code, output.text)))


def _boot(asked: Asked, output: Output) -> Iterator[Piece]:
    words = tuple(output.stdout.split())
    if output.code == 0 and words:
        yield known(Boot(words), output.line)
    del asked


def _daemon(asked: Asked, output: Output) -> Iterator[Piece]:
    del asked
    code = output.code if not output.has_no_file else 3
    text = f"absent: {output.line}" if output.has_no_file else output.stdout
    yield Piece(DaemonConfig, parse_daemon(Section("daemon", code, text)))


def _mode(asked: Asked, output: Output) -> Iterator[Piece]:
    del asked
    if found := re.search(r"(?m)^FABRIC_MODE=(\d)", output.stdout):
        yield known(FabricManager(mode=found[1]), found[0])


def _index(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read model.safetensors.index.json, whole or only the names of its shards."""
    shards = tuple(sorted(set(re.findall(r"[\w.-]+\.safetensors(?![\w.])", output.stdout))))
    total = re.search(r'"total_size"\s*:\s*(\d+)', output.stdout)
    folder = str(PurePosixPath(asked.path).parent)
    shards = tuple(name for name in shards if "index" not in name)
    if shards or total:
        size = int(total[1]) if total else None
        yield known(ModelFolder(folder, shards=shards, tensor_bytes=size), output.line[:120])


def _command_line(asked: Asked, output: Output) -> Iterator[Piece]:
    words = tuple(output.stdout.replace("\0", " ").split())
    if output.code != 0 or not words:
        return
    told = dict(pairwise(words))
    mode = told.get("--disaggregation-mode", "")
    side = asked.place if asked.place in ("prefill", "decode") else mode
    serving = Serving(
        command=words,
        prefill_command=words if side == "prefill" else None,
        decode_command=words if side == "decode" else None,
        model_path=told.get("--model-path", told.get("--model", "")),
        served_name=told.get("--served-model-name", ""),
    )
    yield known(serving, " ".join(words)[:160])


def _of(read: Callable[[Output], Iterator[Piece]]) -> Contents:
    return lambda _, output: read(output)


_CONTENTS: tuple[tuple[str, Contents], ...] = (
    (r"^/proc/driver/nvidia/version$", _of(driver.read_proc_version)),
    (r"^/sys/module/nvidia/version$", _of(driver.read_module_version)),
    (r"^/proc/driver/nvidia/gpus/.*information", _of(driver.read_bound)),
    (r"^/proc/modules$", _modules),
    (r"^/proc/cmdline$", _boot),
    (r"^/etc/docker/daemon\.json$", _daemon),
    (r"/cdi/.*\.ya?ml$", lambda asked, output: containers.read_cdi_file(asked.path, output)),
    (r"/ports/\d+/(?:hw_)?counters/", lambda asked, out: rdma.read_counter(asked.path, out)),
    (r"^/proc/meminfo$", _of(host.read_meminfo)),
    (r"^/proc/self/limits$", _of(host.read_limits)),
    (r"^/proc/mdstat$", _mdstat),
    (r"^/proc/\d+/environ$", _of(host.read_variables)),
    (r"^/proc/1/cmdline$", _command_line),
    (r"^/etc/os-release$", _of(host.read_release_file)),
    (r"/apt/history\.log|/dnf\.log|/dpkg\.log", _of(driver.read_history)),
    (r"/(?:kern|syslog|messages|dmesg)(?:\.log)?$", driver.read_log),
    (r"cuda[^/]*/version\.json$", _of(tools.read_toolkit_file)),
    (r"fabricmanager\.cfg$", _mode),
    (r"/fabricmanager\.log$", _of(units.read_manager_log)),
    (r"^/sys/class/infiniband/", lambda asked, output: rdma.read_sysfs(asked.path, output)),
    (r"\.(?:log|out|err)$", figures.read_nccl_log),
    (r"^/sys/class/net/", lambda asked, output: rdma.read_netdev(asked.path, output)),
    (r"\.safetensors\.index\.json$", _index),
    (r"(?i)(?:prolog|epilog)", lambda asked, output: slurm.read_hook(asked.path, output)),
)


def read_ls(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `ls [-l|-d] PATH`, by what the path is."""
    paths = asked.operands or ("",)
    path = paths[-1].rstrip("/")
    if path.startswith("/dev/"):
        yield from nodes_in_dev.read_modes(asked, output)
    for pattern, read in _LISTINGS:
        if re.search(pattern, path):
            yield from read(asked, output)
            return
    if any("/cdi" in each for each in paths):
        yield from containers.read_cdi_folders(output)
    elif output.is_late or re.search(_DEAD, output.text):
        yield unknown(ModelFolder, "timed out", output.line or f"{path} does not answer")
    else:
        yield from _lost_model(asked, path, output)
        yield from _existence(asked, path, exists=_exists(output), output=output)
        yield from _model_folder(asked, path, output)


_DEAD = "Stale file handle|Transport endpoint is not connected|Input/output error"
"""How a mount fails behind which nobody answers any more."""

_MODEL = re.compile(r"(?i)/\S*(?:model|weight|checkpoint|huggingface|/hf)")


def _lost_model(asked: Asked, path: str, output: Output) -> Iterator[Piece]:
    """A folder of models that is not there, or that this login may not read."""
    if asked.place != HOST or not _MODEL.match(path) or output.code == 0:
        return
    if output.is_refused:
        yield unknown(ModelFolder, "permission denied", output.line)
    elif output.has_no_file:
        yield absent(ModelFolder, output.line)


def _exists(output: Output) -> bool | None:
    """A listing that succeeded shows that its path is there; a refusal shows nothing."""
    if output.is_refused or output.is_late:
        return None
    if output.code == 0:
        return True
    return False if output.has_no_file else None


def read_test(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `test -d PATH` or `[ -e PATH ]`: 0 is yes, 1 is no."""
    words = [word for word in asked.words if word != "]"]
    if asked.is_excused:
        return
    if len(words) == 2 and words[0] in ("-d", "-e", "-f", "-x", "-c", "-r") and output.code < 2:
        path = words[1].rstrip("/")
        yield from _existence(asked, path, exists=output.code == 0, output=output)


def _existence(asked: Asked, path: str, *, exists: bool | None, output: Output) -> Iterator[Piece]:
    """What it means that a path is there or not; None says nothing."""
    if exists is None:
        return
    line = output.line or f"{path} {'is' if exists else 'is not'} there"
    if path.endswith("/nvlsm"):
        yield known(FabricManager(nvlsm=exists), line)
    elif name := cache_of(path):
        yield known(JitCaches({name: exists}), line)
    elif path == "/dev/nvidia-uvm":
        yield known(Driver(uvm_node=exists), line)
    elif path == "/dev/infiniband" and not exists and asked.place == HOST:
        yield known(RdmaNodes(()), line)
    elif (
        path == "/dev/infiniband"
        and asked.place == HOST
        and not nodes_in_dev.leaves_out(asked, output)
    ):
        names = tuple(re.findall(r"\b(uverbs\d+|rdma_cm|umad\d+|issm\d+)\b", output.stdout))
        yield known(RdmaNodes(names), " ".join(names))
    elif path in ("/proc/driver/nvidia", "/proc/driver/nvidia/version") and not exists:
        yield known(Driver(loaded=Absent(line)), line)
    elif path == "/sys/class/infiniband" and not exists:
        yield Piece(InfiniBand, Absent(line))


def _model_folder(asked: Asked, path: str, output: Output) -> Iterator[Piece]:
    """Read a model's folder where its files give it away; each side's belongs to that side."""
    names = _names(output.stdout)
    if asked.place in ("worker", "frontend", "prefill", "decode"):
        side = "frontend_files" if asked.place == "frontend" else "worker_files"
        reading = Known(tuple(names), output.line) if output.code == 0 else Absent(output.line)
        if output.code == 0 or output.has_no_file:
            yield known(Serving(**{side: reading}), output.line)  # type: ignore[arg-type]
        return
    if "config.json" in names or any(name.endswith(WEIGHTS) for name in names):
        sizes = _sizes(output.stdout)
        files = sizes or dict.fromkeys(names, 0)
        line = f"{path}: {sum(name.endswith(WEIGHTS) for name in files)} weight files"
        yield known(ModelFolder(path, path, files, is_sized=bool(sizes)), line)


def _names(text: str) -> list[str]:
    lines = [line.strip() for line in text.splitlines()]
    long = [line.split(" -> ")[0].split()[-1] for line in lines if re.match(r"[-l]r[-w]", line)]
    return long or [line for line in lines if re.fullmatch(r"[\w.+-]+", line)]


def _sizes(text: str) -> dict[str, int]:
    """Read `ls -l`: bytes by name; links and human sizes tell none."""
    rows = re.findall(r"(?m)^-\S+\s+\d+\s+\S+\s+\S+\s+(\d+)\s+\S+\s+\S+\s+\S+\s+(\S+)$", text)
    return {name: int(size) for size, name in rows}


def read_du(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `du -sb PATH`: bytes of a folder, a model's where its path says so."""
    found = re.search(r"(?m)^(\d+)\t(/\S+)$", output.stdout)
    if found and asked.has("-sb", "-b", "--bytes"):
        size = int(found[1])
        yield known(Weight(found[2], size), f"{found[2]}: {size / 1024**3:.1f} GiB")


@dataclass(frozen=True, slots=True)
class Weight:
    """Bytes that `du` counted in a folder."""

    path: str
    bytes: int


_LISTINGS: tuple[tuple[str, Contents], ...] = (
    (r"^/dev/nvidia-caps-imex-channels", nodes_in_dev.read_channels),
    (r"^/dev/nvidia", driver.read_device_nodes),
    (r"^/proc/driver/nvidia/gpus", _of(driver.read_bound)),
    (r"lib(?:cuda|nvidia-ml)\.so", _of(driver.read_library)),
    (r"^/dev/infiniband/", lambda asked, out: nodes_in_dev.read_verbs(asked.path.rstrip("/"), out)),
    (r"^/dev/char$", containers.read_device_links),
    (r"^/sys/class/infiniband", rdma.read_class),
    (r"^(?:/usr/local/cuda|/opt/nvidia/cuda|/opt/cuda)", tools.read_toolkit_folder),
)


READERS: Readers = {
    "cat": read_cat,
    "for": read_loop,
    "ls": read_ls,
    "test": read_test,
    "[": read_test,
    "du": read_du,
}
