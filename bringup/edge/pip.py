"""What a package index says of pins, through pip's own resolver; and wheels fetched beforehand."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.errors import CommandFailed
from ..core.reading import Absent, Known, Reading, Unknown
from ..image.pins import Pin, Release, Resolution, nearest, normal, parse_requirement
from ..image.recipe import Recipe
from .local import run_here

_VERSIONS = re.compile(r"Could not find a version that satisfies .*\(from versions: (.*)\)")


@dataclass(frozen=True, slots=True)
class Target:
    """The interpreter inside the image; wheels are chosen for it, not for the controller."""

    python: str
    platforms: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        platforms = tuple(w for name in self.platforms for w in ("--platform", name))
        return ("--only-binary=:all:", "--python-version", self.python, *platforms)


def target_of(recipe: Recipe) -> Target:
    return Target(recipe.python, recipe.platforms)


@dataclass(frozen=True, slots=True)
class Index:
    """Where packages come from: the index that pip is set up for, or a folder of wheels alone."""

    wheels: Path | None = None
    url: str = ""
    program: tuple[str, ...] = field(default=(sys.executable, "-m", "pip"))
    seconds: int = 300
    fetch_seconds: int = 7200
    """For wheels themselves: PyTorch and CUDA come to several GB."""

    @property
    def source(self) -> tuple[str, ...]:
        if self.wheels is not None:
            return ("--no-index", "--find-links", str(self.wheels))
        return ("--index-url", self.url) if self.url else ()

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run one pip command; its exit code is data."""
        command = self._command(words)
        settings = None if self.wheels is None else _without_pip_settings()
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=self.seconds, env=settings
        )  # fmt: skip

    def _command(self, words: tuple[str, ...]) -> tuple[str, ...]:
        return (*self.program, "--disable-pip-version-check", "--no-input", *words)

    def release(self, pin: Pin, target: Target) -> Reading[Release]:
        """Return what is published of a pin; where it is not, with the metadata of the nearest."""
        report = self.report((str(pin),), target, "--no-deps")
        if isinstance(report, Known):
            return Known(_release(pin, report.value, exists=True))
        if isinstance(report, Unknown):
            return report
        versions = _versions(report.evidence)
        close = nearest(pin.version, versions)
        stand_in = close[0] if close else ""
        other = self.report((f"{pin.name}=={stand_in}",), target, "--no-deps")
        found = _release(pin, other.value, exists=False) if isinstance(other, Known) else None
        requires = found.requires if found else ()
        return Known(Release(pin, False, versions, requires, stand_in), report.evidence)

    def resolve(
        self, pins: Iterable[Pin], target: Target, held: Mapping[str, str]
    ) -> Reading[Resolution]:
        """Return what pip would install for pins while the held packages stay."""
        wanted = tuple(str(pin) for pin in pins)
        if not wanted:
            return Known(Resolution({}))
        with tempfile.TemporaryDirectory() as folder:
            constraints = Path(folder) / "constraints.txt"
            constraints.write_text("".join(f"{n}=={v}\n" for n, v in sorted(held.items()) if v))
            report = self.report(wanted, target, "-c", str(constraints))
        if isinstance(report, Known):
            installs = {normal(m["name"]): str(m["version"]) for m in _metadata(report.value)}
            return Known(Resolution(installs))
        return report

    def report(self, pins: tuple[str, ...], target: Target, *more: str) -> Reading[dict[str, Any]]:
        """Return pip's dry-run report; Absent when pip says that no such set exists."""
        with tempfile.TemporaryDirectory() as folder:
            written = Path(folder) / "report.json"
            try:
                done = self.run(
                    "install", "--dry-run", "--ignore-installed", "--report", str(written),
                    "--target", folder, *target.words, *self.source, *more, *pins,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return Unknown(f"pip did not answer in {self.seconds} s")
            if done.returncode == 0:
                return Known(json.loads(written.read_text()))
        return _refusal(done.stdout + done.stderr)

    def fetch(
        self,
        pins: Iterable[str],
        target: Target,
        folder: Path,
        *more: str,
        on_line: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Download wheels into a folder; raises CommandFailed with pip's last lines."""
        wanted = tuple(pins)
        if not wanted:
            return
        words = ("download", "--dest", str(folder), *target.words, *self.source, *more, *wanted)
        settings = () if self.wheels is None else _unset()
        done = run_here(
            (*settings, *self._command(words)), seconds=self.fetch_seconds, on_line=on_line
        )
        if done.exit != 0:
            late = f"pip did not end within {self.fetch_seconds} s"
            why = late if done.exit == 124 else f"pip ended with {done.exit}"
            raise CommandFailed(
                f"cannot fetch wheels for {', '.join(wanted)}: {why}",
                ran="pip " + " ".join(words),
                exit_code=done.exit,
                said=done.tail(),
                remedy="check the index that pip is set up for (pip config list), then run again",
            )


def _unset() -> tuple[str, ...]:
    """Return the words that keep pip's settings of this machine from a command."""
    names = sorted(name for name in os.environ if name.startswith("PIP_"))
    return ("env", *(w for n in names for w in ("-u", n)), f"PIP_CONFIG_FILE={os.devnull}")


def _without_pip_settings() -> dict[str, str]:
    """A folder of wheels is the only source: pip's own settings must not add another."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return {**kept, "PIP_CONFIG_FILE": os.devnull}


def _refusal(words: str) -> Reading[Any]:
    """Tell apart: no such version, a conflict, and nobody could look."""
    noise = ("WARNING", "Looking in", "Collecting", "  Using cached", "Processing", "  Downloading")
    lines = [line for line in words.splitlines() if line and not line.startswith(noise)]
    said = "\n".join(lines)
    match = _VERSIONS.search(said)
    if match is not None and match[1] != "none":
        return Absent(said)
    if "ResolutionImpossible" in said or "conflicting dependencies" in said:
        return Absent(said)
    if match is not None:
        return Unknown("pip found no version at all: no such package, or no index in reach", said)
    return Unknown("pip could not answer: " + (lines[-1] if lines else "it said nothing"), said)


def _versions(said: str) -> tuple[str, ...]:
    match = _VERSIONS.search(said)
    return tuple(part.strip() for part in match[1].split(",")) if match else ()


def _metadata(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [item["metadata"] for item in report["install"]]


def _release(pin: Pin, report: dict[str, Any], *, exists: bool) -> Release:
    metadata = next(m for m in _metadata(report) if normal(m["name"]) == pin.name)
    lines = metadata.get("requires_dist", [])
    requires = tuple(r for r in map(parse_requirement, lines) if r is not None)
    return Release(pin, exists, (), requires, str(metadata["version"]))
