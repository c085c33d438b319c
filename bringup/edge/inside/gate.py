"""Answer the gate's questions inside a built image.

Runs inside the image as ``python3 -m bringup.edge.inside.gate``: the questions come as JSON on
standard input, the answers go as one line of JSON to standard output. Standard library alone.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from .install import STATE, installed, pip_check
from .walk import Walk

SECONDS = 600

Answer = tuple[str, str, dict[str, str]]
"""Status (pass or fail), what to say, and the versions that were found."""


def verdict(faults: list[str], fine: str) -> Answer:
    """Pass with `fine`, or fail with the first ten faults."""
    more = [f"and {len(faults) - 10} more"] if len(faults) > 10 else []
    return ("fail", "; ".join(faults[:10] + more), {}) if faults else ("pass", fine, {})


def run(words: list[str]) -> tuple[int, str]:
    """Run a command; return its exit code and what it said."""
    try:
        done = subprocess.run(
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            timeout=SECONDS, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        return 127, f"{words[0]}: not found"
    except subprocess.TimeoutExpired:
        return 124, f"no end after {SECONDS} s"
    return done.returncode, done.stdout.decode(errors="replace")


def tail(text: str) -> str:
    """Return the last three lines that say something."""
    return " | ".join([line.strip() for line in text.splitlines() if line.strip()][-3:])


def sum_of(name: str) -> str:
    path = Path(name)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "nothing"


class Gate:
    """The questions, each a method named like its check."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.engine: dict[str, str] = asked["engine"]
        self.pinned: list[str] = asked["pinned"]
        self.patched: dict[str, str] = asked["patched"]
        self.before: dict[str, Any] = json.loads((STATE / "before.json").read_text())

    def engine_unchanged(self, _: dict[str, Any]) -> Answer:
        name = self.engine["name"]
        was, now = self.before["packages"].get(name), installed().get(name)
        if was is None or was != now:
            return "fail", f"{name} was {was or 'not there'} in the base and is {now or 'gone'}", {}
        return "pass", f"{name} {now} before and after", {name: was}

    def engine_imported_from_its_path(self, _: dict[str, Any]) -> Answer:
        path = Path(self.engine["path"])
        spec = importlib.util.find_spec(self.engine["name"].replace("-", "_"))
        origin = Path(spec.origin) if spec is not None and spec.origin else None
        if origin is None or not origin.resolve().is_relative_to(path.resolve()):
            return "fail", f"imported from {origin or 'nowhere'}, not from {path}", {}
        return "pass", f"imported from {origin}", {}

    def patches_in_place(self, _: dict[str, Any]) -> Answer:
        recorded: dict[str, str] = json.loads((STATE / "patched.json").read_text())
        faults = [
            f"{name} has sha256 {found}, the patch left {wanted}"
            for name, wanted in sorted({**recorded, **self.patched}.items())
            if (found := sum_of(name)) != wanted
        ]
        return verdict(faults, f"{len(recorded)} patched files have their sums")

    def packages_kept(self, _: dict[str, Any]) -> Answer:
        before, after = self.before["packages"], installed()
        pinned = dict(pin.split("==") for pin in self.pinned)
        faults = [
            f"{name} should be {version} and is {after.get(name, 'not there')}"
            for name, version in sorted({**before, **pinned}.items())
            if after.get(name) != version
        ]
        new = sorted(set(after) - set(before))
        return verdict(faults, f"{len(before)} packages kept; new: {', '.join(new) or 'none'}")

    def requirements_met(self, step: dict[str, Any]) -> Answer:
        known = {*self.before["pip_check"], *step["allow"]}
        return verdict([x for x in pip_check() if x not in known], "pip check finds nothing new")

    def imports(self, step: dict[str, Any]) -> Answer:
        faults = []
        for module in step["modules"]:
            code, said = run([sys.executable, "-c", f"import {module}"])
            if code != 0:
                faults.append(f"import {module} ends with exit {code}: {tail(said)}")
        return verdict(faults, "imports " + ", ".join(step["modules"]))

    def imports_resolve(self, step: dict[str, Any]) -> Answer:
        walk = Walk(step["packages"], step["allow"])
        walk.visit(step["start"], "the gate")
        return verdict(sorted(walk.faults), f"{len(walk.seen)} modules resolve")

    def help_lists(self, step: dict[str, Any]) -> Answer:
        code, said = run(step["command"])
        if code != 0:
            return "fail", f"{' '.join(step['command'])} ends with exit {code}: {tail(said)}", {}
        listed = set(re.findall(r"--[A-Za-z0-9][A-Za-z0-9_-]*", said))
        missing = [f"the help does not list {f}" for f in step["flags"] if f not in listed]
        return verdict(missing, f"the help lists {len(step['flags'])} flags")

    def prints(self, step: dict[str, Any]) -> Answer:
        code, said = run(step["command"])
        if code != 0 or not re.search(step["pattern"], said):
            return "fail", f"{' '.join(step['command'])} (exit {code}): {tail(said)}", {}
        return "pass", tail(said), {}

    def versions(self, step: dict[str, Any]) -> Answer:
        there = installed()
        found = {name: there.get(name, "none") for name in step["packages"]}
        found["nvcc"] = tool_version("nvcc", "--version", r"release (\S+?),")
        found["ucx"] = tool_version("ucx_info", "-v", r"version[ =:]+(\S+)")
        return "pass", ", ".join(f"{name} {v}" for name, v in sorted(found.items())), found


def tool_version(tool: str, flag: str, pattern: str) -> str:
    """Return a tool's version, "none" where it is surely absent, "unknown" where it says none."""
    path = shutil.which(tool) or shutil.which(tool, path="/usr/local/cuda/bin:/usr/local/ucx/bin")
    if path is None:
        return "none"
    match = re.search(pattern, run([path, flag])[1], re.IGNORECASE)
    return match[1] if match else "unknown"


def main() -> None:
    asked = json.load(sys.stdin)
    gate = Gate(asked)
    answers = []
    for step in asked["steps"]:
        try:
            answers.append(getattr(gate, step["check"])(step))
        except Exception as error:  # noqa: BLE001 - a question that breaks is a failed one
            answers.append(("fail", f"the check broke: {type(error).__name__}: {error}", {}))
    print("\n@@gate " + json.dumps(answers), flush=True)


if __name__ == "__main__":
    main()
