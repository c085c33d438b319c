"""The layers of the house: who may import whom."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "bringup"

CORE = {"core"}
PURE = {
    "bench",
    "options",
    "probes",
    "rules",
    "engines",
    "steps",
    "readiness",
    "bundle",
    "image",
    "serve",
    "remedies",
    "weights",
}

MAY: dict[str, set[str]] = {
    "core": CORE,
    **{room: CORE | {room} for room in PURE},
    "rules": CORE | {"rules", "probes", "engines"},
    "engines": CORE | {"engines", "probes", "rules"},
    "remedies": CORE | {"remedies", "steps", "probes", "rules"},
    "bundle": CORE | {"bundle", "readiness", "steps"},
    "image": CORE | {"image", "steps"},
    "weights": CORE | {"weights", "probes"},
    "bench": CORE | {"bench", "engines"},
    "serve": CORE | {"serve", "readiness", "engines", "steps", "probes"},
    "decide": CORE | PURE,
    "edge": CORE | PURE | {"edge"},
    "lab": CORE | {"lab", "edge"},
    "report": CORE | PURE | {"report", "lab"},
    "flow": CORE | PURE | {"decide", "edge", "flow", "lab"},
    "demo": CORE | {"options", "flow", "report", "lab", "demo"},
    "look": CORE | {"options", "edge", "flow", "report"},
    "verbs": CORE | PURE | {"decide", "demo", "edge", "look", "flow", "report", "lab", "verbs"},
    "doors": CORE | {"verbs", "doors", "report"},
    "__init__": set(),
    "__main__": {"doors"},
}

LIBRARIES: dict[str, set[str]] = {
    "edge": {
        "yaml",
        "pydantic",
        "jinja2",
        "fabric",
        "paramiko",
        "cryptography",  # paramiko's own: reads the certificates that paramiko does not check
        "invoke",
        "ClusterShell",
        "blake3",
        "tokenizers",  # the extra `tokenizer`
        "tiktoken",
    },
    "flow": {"yaml"},  # patches that people apply by hand are YAML
    "lab": {"yaml", "pydantic", "asyncssh", "ClusterShell", "cryptography"},
    "report": {"rich", "jinja2"},
    "doors": {"click", "invoke", "rich"},
}

SHARED = {"bringup.edge.names"}
"""Pure modules that live beside effects for the library that they use."""

IMPURE = {"os", "io", "subprocess", "socket", "time", "random", "shutil", "tempfile", "threading"}


def room(path: Path) -> str:
    """Return the room of a module: its folder, or its own name where it lies at the top."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Return dotted names that a module imports, its own package's as ``bringup.ROOM``."""
    package = ("bringup", *path.relative_to(ROOT).parts[:-1])
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            stem = ".".join((*base, node.module)) if node.module else ".".join(base)
            found |= {stem} if node.module else {f"{stem}.{alias.name}" for alias in node.names}
    return found


MODULES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_module_imports_only_what_its_layer_may(path: Path) -> None:
    me = room(path)
    assert me in MAY, f"{me} is no known room"
    for name in imports(path):
        if name in SHARED:
            continue
        first, *rest = name.split(".")
        if first == "bringup" and rest:
            allowed = MAY[me] | {me, "__version__"}  # which everybody may tell
            assert rest[0] in allowed, f"{me} may not import {name}"
        elif first != "bringup" and first not in sys.stdlib_module_names:
            assert first in LIBRARIES.get(me, set()), f"{me} may not import {name}"


@pytest.mark.parametrize(
    "path", [p for p in MODULES if room(p) in PURE | CORE], ids=lambda p: str(p.relative_to(ROOT))
)
def test_pure_rooms_import_nothing_that_acts(path: Path) -> None:
    assert not {name.split(".")[0] for name in imports(path)} & IMPURE


def test_nothing_joins_its_threads_before_ctrl_c_ends_it() -> None:
    """`concurrent.futures` waits for every thread, also at exit; edge.pool waits for none."""
    assert not [path for path in MODULES if "concurrent.futures" in imports(path)]
