"""Figures of nccl-tests, nvbandwidth and perftest, and what NCCL logs of its network."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..figures import NcclNetwork, RailFigures, Reduced
from ..rail import BROKEN, ROW
from ..text import decimal
from .asked import Asked, Output
from .piece import Piece, Read, Readers, known
from .tools import read_cuda_programs

LARGE = 64 * 1024**2
"""Bytes from which a message fills the links; smaller ones measure latency."""

_REDUCED = re.compile(
    r"(?m)^\s*(?P<bytes>\d+)\s+\d+\s+\w+\s+\w+\s+-?\d+\s+[\d.]+\s+[\d.]+\s+(?P<busbw>[\d.]+)\s"
)
_RANK = re.compile(r"(?m)^#\s+Rank\s+\d+\s.*?\bon\s+(\S+)\s+device\s+\d+")


def read_nccl_tests(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `all_reduce_perf`, alone or under `mpirun`: the best of its large messages."""
    yield from read_nccl_log(asked, output)
    rows = [(int(size), float(rate)) for size, rate in _REDUCED.findall(output.stdout)]
    large = [rate for size, rate in rows if size >= LARGE]
    hosts = _RANK.findall(output.stdout)
    if large and hosts:
        best = max(large)
        figure = Reduced(best, len(hosts), len(set(hosts)), "nccl-tests")
        yield known(figure, f"{best:g} GB/s over {len(hosts)} GPUs on {len(set(hosts))} hosts")


_MATRIX = re.compile(
    r"memcpy CE GPU\(row\) (?:->|<-) GPU\(column\) bandwidth \(GB/s\)\n(?P<rows>(?:.*\d.*\n)+)"
)


def read_nvbandwidth(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `nvbandwidth -t device_to_device_memcpy_read_ce`: the slowest pair of GPUs."""
    del asked
    for matrix in _MATRIX.finditer(output.stdout):
        rows = re.findall(r"(?m)^\s*\d+((?:\s+(?:N/A|\d+\.\d+))+)\s*$", matrix["rows"])
        rates = [float(word) for row in rows for word in row.split() if word != "N/A"]
        if rates and len(rows) > 1:
            yield _pairs(min(rates), len(rows), "nvbandwidth")
            return


_PEERS = re.compile(
    r"P2P=Enabled Bandwidth.*Matrix \(GB/s\)\n\s*D\\D.*\n(?P<rows>(?:\s*\d+(?: +\d+\.\d+)+ *\n?)+)"
)


def read_peer_test(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `p2pBandwidthLatencyTest`: the slowest pair that has peer access."""
    del asked
    if found := _PEERS.search(output.stdout):
        rows = [line.split()[1:] for line in found["rows"].splitlines() if line.strip()]
        rates = [float(x) for i, row in enumerate(rows) for k, x in enumerate(row) if i != k]
        if rates and all(len(row) == len(rows) for row in rows):
            yield _pairs(min(rates), len(rows), "p2pBandwidthLatencyTest")


def _pairs(rate: float, gpus: int, program: str) -> Piece:
    return known(Reduced(rate, gpus, 1, f"{program}, slowest pair"), f"{rate:g} GB/s")


_USED = {
    "Socket": r"NCCL INFO (?:NET/Socket : Using|Using network Socket).*",
    "IB": r"NCCL INFO (?:NET/IB : Using|Using network IB).*",
}


def read_nccl_log(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read lines of NCCL_DEBUG=INFO: which network it uses. Two networks tell nothing."""
    del asked
    found = {
        name: said[0].strip()
        for name, pattern in _USED.items()
        if (said := re.search(pattern, output.text))
    }
    if len(found) == 1:
        name = next(iter(found))
        yield known(NcclNetwork(name), found[name])


def read_perftest(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `ib_write_bw -d DEVICE …`: Gb/s where it says so, or how the transfer broke."""
    device = asked.after("-d", "--ib-dev") or _device(output.stdout)
    if not device:
        return
    rows = [decimal(row[1]) for row in ROW.findall(output.stdout)]
    rates = [rate for rate in rows if rate is not None]
    if rates and (unit := re.search(r"BW average\[(Gb/sec|MB/sec|MiB/sec)\]", output.stdout)):
        rate = max(rates) * {"Gb/sec": 1.0, "MB/sec": 0.008, "MiB/sec": 0.008388608}[unit[1]]
        yield known(RailFigures({device: rate}), f"{device}: {rate:.0f} Gb/s")
    elif broken := BROKEN.search(output.text):
        said = broken[0].strip()
        yield known(RailFigures({device: None}, {device: said}), said)


def _device(text: str) -> str:
    found = re.search(r"(?m)^\s*Device\s*:\s*(\w+)", text)
    return found[1] if found else ""


def both(one: Read, other: Read) -> Read:
    """Return a reader that reads with both."""

    def read(asked: Asked, output: Output) -> Iterator[Piece]:
        yield from one(asked, output)
        yield from other(asked, output)

    return read


_TESTS = ("all_reduce_perf", "all_gather_perf", "reduce_scatter_perf", "mpirun", "srun")
_PERFTEST = ("ib_write_bw", "ib_read_bw", "ib_send_bw")

READERS: Readers = {
    **dict.fromkeys(_TESTS, both(read_nccl_tests, read_cuda_programs)),
    **dict.fromkeys(_PERFTEST, read_perftest),
    "nvbandwidth": both(read_nvbandwidth, read_cuda_programs),
    "p2pBandwidthLatencyTest": both(read_peer_test, read_cuda_programs),
    "torchrun": both(read_nccl_log, read_cuda_programs),
}
