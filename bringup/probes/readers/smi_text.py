"""`nvidia-smi -q` as text, whole, by `-d SECTION`, or a piece of it that went through grep."""

from __future__ import annotations

import re

from .smi_words import SLOWDOWNS, TEXT, Listing, total

_VALUE = re.compile(r"^(\s*)(\S.*?)\s*:(?:\s(.*))?$")
_GPU = re.compile(r"^\s*GPU\s+([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s*$")


def read(text: str, *, index: int | None = None) -> Listing:
    """Return what the text tells. `index`: the GPU that was asked for with ``-i``.

    A piece without a "GPU 0000…" line is taken for one GPU, the asked one, else the first.
    """
    head: dict[str, str] = {}
    gpus: list[dict[str, list[str]]] = []
    path: list[tuple[int, str]] = []
    for line in text.splitlines():
        if found := _GPU.match(line):
            gpus.append({"pci/bus_id": [found[1]]})
            path = []
        elif value := _VALUE.match(line):
            depth = len(value[1])
            path = [step for step in path if step[0] < depth]
            key = "/".join([name for _, name in path] + [_key(value[2])])
            _put(head, gpus, key, depth, (value[3] or "").strip())
        elif line.strip() and line.strip() != "--":
            depth = len(line) - len(line.lstrip())
            path = [*(step for step in path if step[0] < depth), (depth, _key(line))]
    return _listing(head, gpus, index, text)


def _put(
    head: dict[str, str], gpus: list[dict[str, list[str]]], key: str, depth: int, word: str
) -> None:
    if depth == 0 and not gpus:
        head[key] = word
        return
    if not gpus:
        gpus.append({})
    gpus[-1].setdefault(key, []).append(word)


def _key(label: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", label.strip().lower()).strip("_")


def _listing(
    head: dict[str, str], gpus: list[dict[str, list[str]]], index: int | None, text: str
) -> Listing:
    attached = head.get("attached_gpus", "")
    rows = [_words(gpu) for gpu in gpus]
    if len(rows) == 1 and index is not None:
        rows[0]["index"] = str(index)
    number = int(attached) if attached.isdecimal() else None
    return Listing(
        driver=head.get("driver_version", "") or head.get("kmd_version", ""),
        cuda=head.get("cuda_version", "") or head.get("cuda_umd_version", ""),
        attached=number,
        gpus=tuple(row for row in rows if row),
        whole=number is not None and number == len(rows),
        ordered=index is None,
        empty=number == 0,
        evidence=next((line.strip() for line in text.splitlines() if line.strip()), ""),
    )


def _words(told: dict[str, list[str]]) -> dict[str, str]:
    words: dict[str, str] = {}
    counters: dict[str, list[str]] = {}
    for path, found in told.items():
        if name := _name(path):
            if name == "repair_pending" and words.get(name) in ("No", "N/A") and found[0] != "N/A":
                words[name] = found[0]  # of two kinds of repair, the one that waits counts
            words.setdefault(name, found[0])
        elif "/health/" in f"/{path}":
            words[f"fabric_health.{path.rpartition('/')[2]}"] = found[0]
        elif name := _counter(path):
            counters.setdefault(name, []).extend(found)
        elif (reason := path.rpartition("/")[2]) in SLOWDOWNS:
            words[f"slowdown.{reason}"] = found[0]
    if "processes" in told or "processes/process_id" in told:
        words |= _processes(told)
    return words | {name: total(found) for name, found in counters.items()}


def _processes(told: dict[str, list[str]]) -> dict[str, str]:
    """Read the section Processes: "None", or identifier, name and memory of each."""
    if told.get("processes") == ["None"]:
        return {"processes": ""}
    columns = [told.get(f"processes/{key}", []) for key in ("process_id", "name")]
    memory = told.get("processes/used_gpu_memory", [])
    if not columns[0] or len({len(column) for column in (*columns, memory)}) > 1:
        return {}
    rows = zip(*columns, memory, strict=True)
    return {"processes": "\n".join("|".join(word.replace("|", " ") for word in r) for r in rows)}


def _name(path: str) -> str:
    """Match the end of a path, so that a piece cut out by grep is understood as well."""
    steps = path.split("/")
    ends = ("/".join(steps[i:]) for i in range(len(steps)))
    return next((TEXT[end] for end in ends if end in TEXT), "")


def _counter(path: str) -> str:
    group, _, name = path.rpartition("/")
    if "uncorrectable" in name and group.endswith(("volatile", "aggregate")):
        return "ecc_uncorrected" if group.endswith("volatile") else "ecc_uncorrected_aggregate"
    if name.endswith("_correctable") and group.endswith("volatile"):
        return "ecc_corrected"
    return ""
