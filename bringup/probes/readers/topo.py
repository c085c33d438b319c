"""`nvidia-smi topo -m`, `topo -p2p` and `nvlink -s`."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_WORD = re.compile(r"^(X|NV\d+|PIX|PXB|PHB|NODE|SYS|OK|CNS|GNS|TNS|NS|U|C2C\d*)$")


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows by GPU index; `nics` are device names by NIC number, `near` their words per GPU."""

    gpus: tuple[tuple[str, ...], ...] = ()
    near: tuple[tuple[str, ...], ...] = ()
    nics: tuple[str, ...] = ()
    cpus: tuple[str, ...] = ()
    numa: tuple[int | None, ...] = ()


def read_matrix(text: str) -> Matrix:
    """Return a matrix; () where the header or a row does not fit, never a part of it."""
    lines = [_ESCAPES.sub("", line).rstrip() for line in text.splitlines()]
    head = next((i for i, line in enumerate(lines) if re.match(r"\s*GPU0\b", line)), None)
    if head is None:
        return Matrix()
    names = re.findall(r"(?:GPU|NIC)\d+|mlx5_\d+", lines[head].split("CPU Affinity")[0])
    rows = {cells[0]: cells for line in lines[head + 1 :] if (cells := _cells(line))}
    gpus = [name for name in names if name.startswith("GPU")]
    taken = [rows.get(name, ()) for name in gpus]
    if any(not _fits(row, len(names)) for row in taken):
        return Matrix()
    legend = dict(re.findall(r"(?m)^\s*(NIC\d+):\s*(\S+)", "\n".join(lines)))
    nics = tuple(legend.get(name, name) for name in names if not name.startswith("GPU"))
    count = len(gpus)
    return Matrix(
        tuple(row[1 : count + 1] for row in taken),
        tuple(tuple(row[count + 1 + i] for row in taken) for i in range(len(nics))),
        nics,
        tuple(row[len(names) + 1] if len(row) > len(names) + 1 else "" for row in taken),
        tuple(_numa(row, len(names)) for row in taken),
    )


def _cells(line: str) -> tuple[str, ...]:
    """Cut a row at tabs, or at runs of blanks where a copy lost the tabs."""
    bare = line.strip()
    if not re.match(r"(?:GPU|NIC)\d+\s|mlx5_\d+\s", bare):
        return ()
    parts = bare.split("\t") if "\t" in bare else re.split(r"\s+", bare)
    return tuple(part.strip() for part in parts)


def _fits(row: tuple[str, ...], count: int) -> bool:
    return len(row) > count and all(_WORD.match(word) for word in row[1 : count + 1])


def _numa(row: tuple[str, ...], count: int) -> int | None:
    word = row[count + 2] if len(row) > count + 2 else ""
    return int(word) if word.isdecimal() else None


def read_links(text: str) -> dict[int, tuple[float | None, ...]]:
    """Return GB/s of every link by GPU index; None for an inactive one.

    Where a GPU says that all are inactive, it names none of them: one stands for all.
    """
    found: dict[int, list[float | None]] = {}
    gpu = None
    for line in text.splitlines():
        if header := re.match(r"GPU (\d+): ", line):
            gpu = int(header[1])
            found[gpu] = []
        elif gpu is not None and "all links are inactive" in line.lower():
            found[gpu] = [None]
        elif gpu is not None and (link := re.match(r"\s+Link \d+: (.+?)\s*$", line)):
            speed = re.match(r"(\d+(?:\.\d+)?) GB/s$", link[1])
            if speed or "inactive" in link[1].lower():
                found[gpu].append(float(speed[1]) if speed else None)
    return {index: tuple(links) for index, links in found.items() if links}


def shown(matrix: Matrix) -> str:
    """Return a matrix in one line for people: "8 GPUs, NV18 between all"."""
    words = {w for i, row in enumerate(matrix.gpus) for j, w in enumerate(row) if i != j}
    between = f", {'/'.join(sorted(words))} between them" if words else ""
    return f"topo -m: {len(matrix.gpus)} GPUs{between}" if matrix.gpus else ""
