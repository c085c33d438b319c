"""Helpers: a described host's tools run in place, and outputs without what differs by nature."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from bringup.lab import tree
from bringup.lab.describe import FOLDER, describe
from bringup.lab.host import tree as tree_of

HERE = Path(__file__).parent
DATA = HERE / "data"


def build(root: Path, name: str, folder: Path = FOLDER) -> Path:
    """Make a host's files below `root` and return it."""
    (hardware,) = describe((name,), folder=folder)
    tree.settle(root, tree_of(hardware))
    return root


def run(root: Path, tool: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a host's tool by its absolute path, as a probe does."""
    command = [str(root / "usr/bin" / tool), *words]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)


_BY_NATURE = (
    (r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "GPU-UUID"),
    (r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}", "NOW"),
)


def masked(text: str) -> str:
    """Return an output with its identifiers and times made alike."""
    for pattern, word in _BY_NATURE:
        text = re.sub(pattern, word, text)
    return text


def skeleton(xml: str) -> list[str]:
    """Return the lines of an XML report: indentation and elements without their values."""
    lines = [re.sub(r">[^<]+</", "></", line) for line in xml.splitlines()]
    return [re.sub(r'id="[^"]*"', "", line) for line in lines if "supported_graphics" not in line]


def shape(text: str) -> list[str]:
    """Return the lines of a text report with words and numbers as one letter each."""
    return [re.sub(r"[A-Za-z0-9_.:/@\[\]-]+", "x", line) for line in text.splitlines()]


def indented(text: str) -> list[str]:
    """Return labels with their indentation, up to the colon."""
    return [line.partition(":")[0] for line in text.splitlines()]
