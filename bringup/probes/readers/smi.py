"""`nvidia-smi` in whatever form it was asked: the one entry to its readers, and its complaints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum

from . import smi_csv, smi_table, smi_text, smi_xml
from .smi_words import Listing, Words

__all__ = [
    "Listing",
    "Trouble",
    "Words",
    "library_version",
    "partial",
    "read",
    "read_all",
    "trouble_of",
]


class Trouble(Enum):
    """What the tool or NVML complains of."""

    MISMATCH = "driver and library differ"
    NO_DRIVER = "no driver answers"
    LOST = "a GPU is lost"
    RESET = "a GPU needs a reset"
    UNKNOWN_ERROR = "unknown error"
    PERMISSION = "no permission"
    NO_LIBRARY = "libnvidia-ml is missing"
    NO_DEVICES = "no devices were found"
    FIELD = "a field is not known"
    MISSING = "not installed"
    INFOROM = "an inforom is corrupted"


_COMPLAINTS: tuple[tuple[str, Trouble], ...] = (
    (r"Driver/library version mismatch", Trouble.MISMATCH),
    (r"couldn't communicate with the NVIDIA driver", Trouble.NO_DRIVER),
    (r"Failed to initialize NVML: (?:Driver Not Loaded|Uninitialized)", Trouble.NO_DRIVER),
    (r"GPU is lost|fallen off the bus", Trouble.LOST),
    (r"GPU requires reset", Trouble.RESET),
    (r"(?:Failed to initialize NVML: |NVML: .*)Insufficient Permissions", Trouble.PERMISSION),
    (r"Unable to determine the device handle", Trouble.LOST),
    (r"Failed to initialize NVML: .*|Unknown Error", Trouble.UNKNOWN_ERROR),
    (r"couldn't find libnvidia-ml|libnvidia-ml\.so.*cannot open", Trouble.NO_LIBRARY),
    (r"^No devices were found", Trouble.NO_DEVICES),
    (r"infoROM is corrupted", Trouble.INFOROM),
    (r'^Field ".*" is not a valid field to query', Trouble.FIELD),
    (r"nvidia-smi: (?:command )?not found", Trouble.MISSING),
)


def trouble_of(text: str) -> tuple[Trouble, str] | None:
    """Return the first complaint in a text with its line, or None.

    What stands in brackets, XML tags, table cells or after " : " is the value of a single field,
    not a complaint of the tool.
    """
    for line in text.splitlines():
        if line.lstrip().startswith(("<", "|")) or " : " in line:
            continue
        bare = re.sub(r"\[[^\]]*\]", "", line)
        for pattern, trouble in _COMPLAINTS:
            if re.search(pattern, bare):
                return trouble, line.strip()
    return None


def library_version(text: str) -> str:
    """Return the short version that a mismatch names ("570.195"), or ""."""
    found = re.search(r"NVML library version:\s*(\d+(?:\.\d+)+)", text)
    return found[1] if found else ""


def read(text: str, *, fields: Sequence[str] = (), index: int | None = None) -> Listing:
    """Return what a text tells, whichever form it has. `fields` are those asked without header."""
    plain = text.replace("\0", "")
    rest = "\n".join(line for line in plain.splitlines() if not line.startswith("WARNING: "))
    listing = _listing(rest, fields, index)
    complaint = trouble_of(plain)
    if complaint is None:
        return listing
    trouble, line = complaint
    if trouble is Trouble.INFOROM:
        return replace(listing, trouble=line)
    if trouble is Trouble.NO_DEVICES and not listing.gpus:
        return Listing(empty=True, trouble=line, evidence=line)
    return _troubled(listing, line)


def _troubled(listing: Listing, line: str) -> Listing:
    """A listing beside a complaint (a lost GPU among good ones) is never whole."""
    return replace(listing, whole=False, trouble=line, evidence=listing.evidence or line)


def partial(listing: Listing) -> Listing:
    """Return a listing of which only some lines came through, or that was asked of some GPUs."""
    return replace(listing, whole=False)


def _listing(text: str, fields: Sequence[str], index: int | None) -> Listing:
    if "<nvidia_smi_log" in text:
        return smi_xml.read(text)
    if re.search(r"^\| NVIDIA-SMI|^\|=+[+|]", text, re.MULTILINE):
        return smi_table.read(text)
    if re.search(r"^GPU \d+: ", text, re.MULTILINE):
        return smi_table.read_list(text)
    first = next((line for line in text.splitlines() if line.strip()), "")
    if fields or smi_csv.header(first):
        return smi_csv.read(text, fields, index=index)
    if "NVSMI LOG" in text or re.search(r"^\s*\S.*\s:\s", text, re.MULTILINE):
        return smi_text.read(text, index=index)
    return Listing()


def read_all(text: str) -> Iterator[Listing]:
    """Yield what each form in a text tells: XML first, then whatever follows it."""
    start = text.find("<nvidia_smi_log")
    end = text.find("</nvidia_smi_log>")
    if start < 0:
        yield read(text)
        return
    stop = end + len("</nvidia_smi_log>") if end >= 0 else len(text)
    yield read(text[:stop])
    rest = text[stop:].lstrip("\n")
    if rest.strip():
        yield read(rest)
