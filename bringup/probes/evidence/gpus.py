"""What `nvidia-smi`, in any of its forms, told of GPUs and how they are joined."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...core.reading import Known
from .. import confidential
from ..confidential import ConfidentialComputing
from ..driver import Driver
from ..gpu import Gpus
from ..readers import infiniband, smi, smi_csv, topo
from ..topology import Topology
from .asked import Asked, Output
from .piece import Piece, Readers, known, trouble_of, unknown


class Levels(dict[str, tuple[str, ...]]):
    """How near each NIC is to each GPU, by name: from the columns of `topo -m`."""


def read_smi(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `nvidia-smi …`: the sub-command decides the form, the text confirms it."""
    if why := trouble_of(output, "nvidia-smi"):
        fact = Topology if asked.has("topo", "nvlink") else Gpus
        yield unknown(fact, why, output.line)
    elif asked.has("topo"):
        yield from _topology(asked, output)
    elif asked.has("nvlink"):
        if links := topo.read_links(output.text):
            yield known(Topology(nvlinks=links), "nvidia-smi nvlink -s")
    elif any(word.startswith("--query-compute-apps") for word in asked.words):
        yield from _processes(asked, output)
    elif asked.has("conf-compute"):
        yield Piece(ConfidentialComputing, confidential.read(output.stdout))
    elif asked.has("pmon"):
        yield from _monitored(output)
    elif asked.has("--version"):
        yield from _version(output)
    elif not asked.has(*_NO_QUESTIONS):
        yield from _listing(asked, output)


_NO_QUESTIONS = ("dmon", "mig", "--gpu-reset", "-r", "-pm", "-pl", "-mig", "-c", "-h")
"""Words of calls that change something, or whose output is not about what GPUs are."""


def _version(output: Output) -> Iterator[Piece]:
    """Read `nvidia-smi --version`: it asks no GPU."""
    if found := re.search(r"(?m)^(?:DRIVER|KMD) version\s*:\s*(\d{3}(?:\.\d+)+)", output.stdout):
        yield known(Driver(loaded=Known(found[1], found[0])), found[0])


def _topology(asked: Asked, output: Output) -> Iterator[Piece]:
    matrix = topo.read_matrix(output.text)
    if asked.has("-p2p"):
        if matrix.gpus:
            yield known(Topology(peers=matrix.gpus), f"topo -p2p: {len(matrix.gpus)} GPUs")
        return
    if matrix.gpus:
        yield known(
            Topology(matrix.gpus, None, None, matrix.cpus or None, matrix.numa or None,
                     matrix.nics or None),
            topo.shown(matrix),
        )  # fmt: skip
        yield Piece(smi.Listing, Known(_counted(len(matrix.gpus), topo.shown(matrix))))
    spaced = dict(zip(matrix.nics, matrix.near, strict=True))  # a copy that lost its tabs
    named = infiniband.topology(output.text) or spaced
    # without the legend below the matrix, NIC0 is a heading and no device
    if levels := {k: v for k, v in named.items() if not re.fullmatch(r"NIC\d+", k)}:
        yield known(Levels(levels), "nvidia-smi topo -m")


def _counted(count: int, evidence: str) -> smi.Listing:
    gpus = tuple({"index": str(index)} for index in range(count))
    return smi.Listing(gpus=gpus, whole=True, ordered=True, evidence=evidence)


def _listing(asked: Asked, output: Output) -> Iterator[Piece]:
    if asked.is_counted:
        number = output.stdout.strip()
        if number.isdecimal() and (asked.has("-L") or asked.after("--query-gpu")):
            yield Piece(smi.Listing, Known(_counted(int(number), f"{number} GPUs")))
        return
    query = asked.after("--query-gpu", "--query-remapped-rows")
    fields = tuple(query.split(",")) if query else ()
    chosen = asked.after("-i", "--id")
    index = int(chosen) if chosen.isdecimal() else None
    if asked.is_reshaped and (tallied := _tallied(output.stdout)):
        yield Piece(smi.Listing, Known(tallied))
        return
    headed = "noheader" not in asked.after("--format")
    if library := smi.library_version(output.text):
        yield known(Driver(library=Known(library, output.line)), output.line)
    listing = smi.read(
        output.text, fields=() if headed and _has_header(output.text) else fields, index=index
    )
    if not (listing.gpus or listing.empty or listing.trouble):
        return  # a part of the output that says nothing about GPUs is no failed look
    if asked.is_cut or asked.is_reshaped or chosen:
        listing = smi.partial(listing)
    yield Piece(smi.Listing, Known(listing))


def _tallied(text: str) -> smi.Listing | None:
    """Read names behind ``sort | uniq -c``: ``      8 NVIDIA B200``."""
    rows = re.findall(r"(?m)^\s*(\d{1,3}) (NVIDIA \S.*?)\s*$", text)
    if not rows or len(rows) != len([line for line in text.splitlines() if line.strip()]):
        return None
    names = [name for count, name in rows for _ in range(int(count))]
    gpus = tuple({"index": str(index), "name": name} for index, name in enumerate(names))
    return smi.Listing(gpus=gpus, whole=True, ordered=True, evidence=text.strip())


def _has_header(text: str) -> bool:
    lines = (line for line in text.splitlines() if line.strip())
    return any(smi_csv.header(line) for line in lines)


def _processes(asked: Asked, output: Output) -> Iterator[Piece]:
    """Rows of `--query-compute-apps`; without a GPU column they stand for GPU 0."""
    fields = asked.after("--query-compute-apps").split(",")
    rows: dict[str, list[str]] = {}
    for line in output.stdout.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(fields) or not any(cell.isdecimal() for cell in cells):
            continue
        told = dict(zip(fields, cells, strict=True))
        bus = told.get("gpu_bus_id", "")
        name = told.get("process_name", told.get("name", "")).replace("|", " ")
        memory = told.get("used_memory", told.get("used_gpu_memory", ""))
        rows.setdefault(bus, []).append(f"{told.get('pid', '')}|{name}|{memory}")
    for bus, listed in rows.items():
        words = {"bus_id": bus} if bus else {"index": "0"}
        gpu = {**words, "processes": "\n".join(listed)}
        yield Piece(smi.Listing, Known(smi.Listing(gpus=(gpu,), evidence=output.line)))


def _monitored(output: Output) -> Iterator[Piece]:
    """Read `nvidia-smi pmon -c 1`: GPU, PID, kind, figures, command; ``-`` for an idle GPU."""
    rows = re.findall(r"(?m)^\s*(\d+)\s+(\d+|-)\s+(\S+)\s.*?(\S+)\s*$", output.stdout)
    for index in dict.fromkeys(index for index, *_ in rows):
        listed = [f"{pid}|{name}|" for gpu, pid, _, name in rows if gpu == index and pid != "-"]
        yield _used(index, listed, output.line)


def read_users(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `fuser -v /dev/nvidia*` and `lsof /dev/nvidia*`: who has a GPU's file open."""
    del asked
    users: dict[str, dict[str, str]] = {}
    index = ""
    for line in output.text.splitlines():
        found = re.match(r"(?:/dev/nvidia(\d+):)?\s+\S+\s+(\d+) [F.rcem]{5,} (\S+)", line)
        if re.match(r"/dev/nvidia(?!\d)", line):
            index = ""
        elif found:
            index = found[1] or index
            users.setdefault(index, {})[found[2]] = found[3]
        elif opened := re.match(r"(\S+)\s+(\d+)\s.*\s/dev/nvidia(\d+)$", line):
            users.setdefault(opened[3], {})[opened[2]] = opened[1]
    for gpu, names in users.items():
        if gpu:
            yield _used(gpu, [f"{pid}|{name}|" for pid, name in names.items()], output.line)


def _used(index: str, listed: list[str], line: str) -> Piece:
    gpu = {"index": index, "processes": "\n".join(listed)}
    return Piece(smi.Listing, Known(smi.Listing(gpus=(gpu,), evidence=line)))


READERS: Readers = {"nvidia-smi": read_smi, "fuser": read_users, "lsof": read_users}
