"""The table of plain `nvidia-smi`, old and new labels, and the list of `nvidia-smi -L`."""

from __future__ import annotations

import re

from .smi_words import Listing, Words

# Driver 610 calls them "KMD Version" and "CUDA UMD Version" (sgl-project/sglang#27487).
_DRIVER = re.compile(r"(?:Driver|KMD) Version:\s*(\d[\d.]*)")
_CUDA = re.compile(r"CUDA (?:UMD )?Version:\s*(\d+\.\d+)")
_FIRST = re.compile(
    r"^\|\s*(\d+)\s{2,}(\S.*?)\s+(On|Off|N/A|ERR!)\s*\|"
    r"\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s+\S+\s*\|\s*(\S.*?)\s*\|"
)
_ROW = re.compile(r"^\|([^|]*)\|([^|]*)\|([^|]*)\|\s*$")
_LISTED = re.compile(r"^GPU (\d+): (\S.*?) \(UUID: ([^)\s]+)\)\s*$")
_PROCESS = re.compile(r"^\|\s+(\d+)\s+\S+\s+\S+\s+(\d+)\s+\S+\s+(\S.*?)\s+(\d+MiB|N/A)\s*\|\s*$")


def read(text: str) -> Listing:
    """Return what the table tells; a table without its last border is not `whole`."""
    driver, cuda = _DRIVER.search(text), _CUDA.search(text)
    upper, _, lower = text.partition("Processes:")
    gpus = tuple(_gpus(upper.splitlines(), _processes(lower) if lower else None))
    return Listing(
        driver=driver[1] if driver else "",
        cuda=cuda[1] if cuda else "",
        gpus=gpus,
        whole=bool(gpus) and upper.rstrip(" |\n").endswith("-+"),
        ordered=True,
        evidence=next((line.strip() for line in text.splitlines() if _DRIVER.search(line)), ""),
    )


def _gpus(lines: list[str], processes: dict[str, list[str]] | None) -> list[Words]:
    gpus: list[dict[str, str]] = []
    place = 0
    for line in lines:
        if first := _FIRST.match(line):
            keys = ("index", "name", "persistence", "bus_id", "ecc_uncorrected")
            gpus.append(dict(zip(keys, first.groups(), strict=True)))
            if processes is not None:
                gpus[-1]["processes"] = "\n".join(processes.get(first[1], []))
            place = 1
        elif gpus and (row := _ROW.match(line)):
            if place < 3:
                gpus[-1] |= (_second, _third)[place - 1](*row.groups())
            place += 1
    return list(gpus)


def _second(left: str, middle: str, right: str) -> Words:
    """``N/A 30C P0 141W / 1000W | 0MiB / 183359MiB | 0% Default``."""
    words = {"compute_mode": re.split(r"\s{2,}|%", right.strip())[-1].strip()}
    if heat := re.search(r"\b(\d+)C\b", left):
        words["temperature_c"] = heat[1]
    if power := re.search(r"/\s*(\S+)\s*$", left):
        words["power_limit_w"] = power[1].removesuffix("W")
    used, slash, size = middle.partition("/")
    if slash and "N/A" not in middle:
        words["memory_used_mib"] = re.sub(r"MiB$", " MiB", used.strip())
        words["memory_mib"] = re.sub(r"MiB$", " MiB", size.strip())
    else:
        words["memory_mib"] = words["memory_used_mib"] = middle.strip() or "N/A"
    return words


def _third(left: str, middle: str, right: str) -> Words:
    return {"mig": right.strip()} if right.strip() and not left.strip() + middle.strip() else {}


def _processes(text: str) -> dict[str, list[str]]:
    """Rows of the process table as "pid|name|memory", by GPU index."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if row := _PROCESS.match(line):
            name = row[3].replace("|", " ")
            found.setdefault(row[1], []).append(f"{row[2]}|{name}|{row[4].replace('MiB', ' MiB')}")
    return found


def read_list(text: str) -> Listing:
    """Return what `nvidia-smi -L` tells. MIG devices stand indented below their GPU."""
    gpus: list[dict[str, str]] = []
    odd = False
    for line in text.splitlines():
        if row := _LISTED.match(line):
            gpus.append({"index": row[1], "name": row[2], "uuid": row[3]})
        elif gpus and line.startswith("  MIG "):
            gpus[-1]["mig"] = "Enabled"
        else:
            odd = odd or bool(line.strip())
    return Listing(
        gpus=tuple(gpus), whole=bool(gpus) and not odd, ordered=True,
        evidence=text.strip().split("\n")[0] if gpus else "",
    )  # fmt: skip
