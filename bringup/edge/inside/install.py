"""Install the pinned packages into an image, and refuse to touch what the base brought.

Runs inside the image: ``python3 -m bringup.edge.inside.install packages.json [WHEEL_FOLDER]``.
Standard library alone. Leaves `before.json`, the state of the base, for the gate.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

STATE = Path("/opt/bringup")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
QUIET = {"PIP_BREAK_SYSTEM_PACKAGES": "1", "PIP_ROOT_USER_ACTION": "ignore"}


def installed() -> dict[str, str]:
    """Return every installed distribution: normalised name to version."""
    found: dict[str, str] = {}
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"]
        if name:
            found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), distribution.version)
    return found


def pip_check() -> list[str]:
    """Return what pip says about unmet requirements, a line each."""
    done = subprocess.run((*PIP, "check"), capture_output=True, text=True, check=False)
    return sorted(line for line in done.stdout.splitlines() if line and "No broken" not in line)


def split(pin: str) -> tuple[str, str]:
    """Return name and version of ``name[extra]==version``."""
    name, _, version = pin.partition("==")
    return name.partition("[")[0].strip(), version.strip()


def held(document: dict[str, Any], before: dict[str, str]) -> list[str]:
    """Return the pins that pip must keep to: all of the base, then constraints it lacks."""
    more = [pin for pin in document["constraints"] if split(pin)[0] not in before]
    return [f"{name}=={version}" for name, version in sorted(before.items())] + more


def refuse_displacing(document: dict[str, Any], before: dict[str, str]) -> None:
    """Stop where a pin names a package that the base has in another version."""
    for pin in (*document["packages"], *document["no_deps"]):
        name, version = split(pin)
        if before.get(name, version) != version:
            sys.exit(f"cannot install {pin}: the base has {name} {before[name]}, and it must stay")
    engine = document["engine"]
    found = before.get(engine["name"])
    if found is None:
        sys.exit(f"cannot build on this base: it has no {engine['name']}")
    if engine["version"] and found != engine["version"]:
        sys.exit(
            f"cannot build on this base: its {engine['name']} is {found}, "
            f"image.yml says {engine['version']}"
        )


def install(pins: list[str], options: list[str]) -> None:
    """Run pip for some pins; leaves its words in the log and stops on its refusal."""
    if not pins:
        return
    command = (*PIP, "install", "--no-cache-dir", "--no-input", *options, *pins)
    print("bringup: pip install", *options, *pins, flush=True)
    done = subprocess.run(command, env={**os.environ, **QUIET}, check=False)
    if done.returncode != 0:
        sys.exit(f"cannot install {' '.join(pins)}: pip ended with exit {done.returncode}")


def main(words: list[str]) -> None:
    document = json.loads(Path(words[0]).read_text())
    before = installed()
    refuse_displacing(document, before)
    state = {"packages": before, "pip_check": pip_check(), "python": sys.version.split()[0]}
    (STATE / "before.json").write_text(json.dumps(state, indent=1, sort_keys=True))
    source = ["--no-index", "--find-links", words[1]] if len(words) > 1 else []
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.write("\n".join(held(document, before)))
        constraints.flush()
        install(document["no_deps"], ["--no-deps", *source])
        install(document["packages"], ["-c", constraints.name, *source])
    after = installed()
    for name, version in sorted(before.items()):
        if after.get(name) != version:
            sys.exit(f"cannot keep {name} {version} of the base: it is now {after.get(name)}")


if __name__ == "__main__":
    main(sys.argv[1:])
