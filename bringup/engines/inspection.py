"""Ask an image what its engine accepts: one script inside it, one answer, schemas out. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..core.script import Answer, Ask
from ..core.words import command
from .schema import Held, Schema
from .schema_make import from_help

HELP: dict[str, tuple[str, ...]] = {
    "sglang": ("python3", "-m", "sglang.launch_server", "--help"),
    "dynamo.sglang": ("python3", "-m", "dynamo.sglang", "--help"),
    "vllm": ("vllm", "serve", "--help=all"),
    "dynamo.vllm": ("python3", "-m", "dynamo.vllm", "--help"),
    "dynamo.frontend": ("python3", "-m", "dynamo.frontend", "--help"),
}
"""The command that makes each package list its flags."""

IMPORT_S = 300
"""An engine imports torch and its kernels before it prints its help: minutes on a cold disk."""

VERSION = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"


def distribution(package: str) -> str:
    """Return the name under which a package is installed."""
    return "ai-dynamo" if package.startswith("dynamo.") else package


def asks(packages: Iterable[str]) -> tuple[Ask, ...]:
    """Return the sections of the script that runs inside the image."""
    return tuple(ask for package in packages for ask in _asks(package))


def _asks(package: str) -> tuple[Ask, ...]:
    version = command(("python3", "-c", VERSION, distribution(package)))
    return (
        Ask(f"version {package}", version, 30),
        Ask(f"help {package}", command(HELP[package]), IMPORT_S),
    )


@dataclass(frozen=True, slots=True)
class Inspected:
    """What an image answered for one package: its schema, or what stood in the way."""

    package: str
    schema: Schema | None = None
    trouble: str = ""


def read(answer: Answer, packages: Iterable[str], *, image: str) -> tuple[Inspected, ...]:
    """Return what the image answered, a package each."""
    return tuple(_read(answer, package, image) for package in packages)


def _read(answer: Answer, package: str, image: str) -> Inspected:
    version, text = answer[f"version {package}"], answer[f"help {package}"]
    if version.exit != 0:
        why = version.trouble or last(version.text)
        return Inspected(package, trouble=f"no version of {distribution(package)}: {why}")
    try:
        made = from_help(text.text, package=package, version=version.first)
    except ValueError:
        why = text.trouble or last(text.text)
        return Inspected(package, trouble=f"no help of {package} {version.first}: {why}")
    return Inspected(
        package, Schema(package, made.version, made.flags, None, f"--help inside {image}")
    )


def last(text: str) -> str:
    """Return the last line that says something: where Python puts the error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def compared(schema: Schema, held: Held) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the flags that an image has beyond the shipped list of its version, and lacks."""
    known = held.exact.flags if held.exact else {}
    if not known:
        return (), ()
    more = tuple(sorted(set(schema.flags) - set(known)))
    return more, tuple(sorted(set(known) - set(schema.flags)))


def file_name(image: str, package: str) -> str:
    """Return the name under which an image's answer is kept."""
    return f"{re.sub(r'[^A-Za-z0-9.@-]+', '_', image)}--{package}.json"
