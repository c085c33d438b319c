"""`nvidia-smi -q -x`: every GPU with every field, the form that survives unknown fields."""

from __future__ import annotations

from . import markup
from .smi_words import SLOWDOWNS, XML, Listing, Words, total


def read(text: str) -> Listing:
    """Return what an XML log tells. One cut off is not `whole`, and its last GPU is left out."""
    root = markup.parse(text)
    log = next(root.all("nvidia_smi_log"), root)
    head = dict(log.leaves())
    elements = [child for child in log.children if child.tag == "gpu"]
    gpus = tuple(_words(child) for child in elements if child.closed)
    attached = head.get("attached_gpus", "")
    return Listing(
        driver=head.get("driver_version", ""),
        cuda=head.get("cuda_version", ""),
        attached=int(attached) if attached.isdecimal() else None,
        gpus=gpus,
        whole=log.closed,
        ordered=True,
        empty=log.closed and not elements and attached == "0",
        trouble="" if log.closed else "the XML of nvidia-smi -q -x was cut off",
        evidence=f"nvidia-smi -q -x: driver {head.get('driver_version', '?')}, {len(gpus)} GPUs",
    )


def _words(gpu: markup.Element) -> Words:
    words: dict[str, str] = {"bus_id": gpu.attributes["id"]} if "id" in gpu.attributes else {}
    counters: dict[str, list[str]] = {}
    for path, word in gpu.leaves():
        if name := XML.get(path):
            _put(words, name, word)
        elif path.startswith("fabric/health/"):
            words[f"fabric_health.{path.rpartition('/')[2]}"] = word
        elif name := _counter(path):
            counters.setdefault(name, []).append(word)
        elif (reason := _slowdown(path)) in SLOWDOWNS:
            words[f"slowdown.{reason}"] = word
    words |= {name: total(found) for name, found in counters.items()}
    if any(child.tag == "processes" for child in gpu.children):
        words["processes"] = _processes(gpu)
    return words


def _put(words: dict[str, str], name: str, word: str) -> None:
    """Keep the first usable word; of two repairs that may be pending, the one that is."""
    if name == "repair_pending" and words.get(name) in ("No", "N/A"):
        words[name] = word if word != "N/A" else words[name]
    elif words.get(name, "N/A") == "N/A" or name == "bus_id":
        words[name] = word


def _counter(path: str) -> str:
    """Return the attribute that an error counter adds to, or ""."""
    group, _, name = path.removeprefix("ecc_errors/").partition("/")
    if not path.startswith("ecc_errors/") or group not in ("volatile", "aggregate"):
        return ""
    if "uncorrectable" in name and "sources" not in name:
        return "ecc_uncorrected" if group == "volatile" else "ecc_uncorrected_aggregate"
    if group == "volatile" and "correctable" in name:
        return "ecc_corrected"
    return ""


def _slowdown(path: str) -> str:
    """``clocks_event_reasons/clocks_event_reason_X``, spelled ``throttle`` before driver 535."""
    folder, _, name = path.partition("/")
    if folder not in ("clocks_event_reasons", "clocks_throttle_reasons"):
        return ""
    return name.removeprefix("clocks_event_reason_").removeprefix("clocks_throttle_reason_")


def _processes(gpu: markup.Element) -> str:
    rows = []
    for info in gpu.all("process_info"):
        told = dict(info.leaves())
        name = told.get("process_name", "").replace("|", " ").replace("\n", " ")
        rows.append(f"{told.get('pid', '')}|{name}|{told.get('used_memory', '')}")
    return "\n".join(rows)
