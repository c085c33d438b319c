"""Read the schema of an engine's version out of a wheel or an unpacked folder; imports nothing."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from ..core.errors import UsageError, unread
from ..engines.schema import Flag, Schema
from ..engines.schema_make import flags_in, from_help, variables_in

SHARED = "dynamo/common/configuration/groups/"
PLACES: dict[str, tuple[str, ...]] = {
    "sglang": ("sglang/srt/server_args.py", "sglang/srt/arg_groups/*"),
    "dynamo.sglang": (
        "dynamo/sglang/*args.py",
        f"{SHARED}runtime_args.py",
        f"{SHARED}frontend_decoding_args.py",
    ),
    "dynamo.vllm": (
        "dynamo/vllm/args.py",
        "dynamo/vllm/backend_args.py",
        f"{SHARED}runtime_args.py",
        f"{SHARED}frontend_decoding_args.py",
    ),
    "vllm-bench": (
        "vllm/benchmarks/serve.py",
        "vllm/benchmarks/datasets.py",
        "vllm/benchmarks/datasets/datasets.py",
    ),
}
"""Where each package declares its flags. vLLM makes its server's flags at run time: ask for its
help. `vllm-bench` is its ``vllm bench serve``, which declares its own."""


def make(package: str, version: str, *, help_text: str, source: str) -> Schema:
    """Return a schema from a help text, a wheel, or both; raises UsageError for neither."""
    from_wheel = from_source(Path(source), package=package, version=version) if source else None
    if not help_text:
        if from_wheel is None:
            raise UsageError("cannot make a list of nothing", remedy="give --help-text or --source")
        return from_wheel
    try:
        text = Path(help_text).read_text()
        listed = from_help(text, package=package, version=version)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read flags from {help_text}: {unread(error)}") from error
    variables = from_wheel.variables if from_wheel else None
    told = f"{listed.source}, variables of the wheel" if from_wheel else listed.source
    return Schema(package, version, listed.flags, variables, told)


def from_source(source: Path, *, package: str, version: str) -> Schema:
    """Return what a wheel or a folder with its content declares and reads.

    Raises UsageError for a package whose flags are not declared as literals, or an empty source.
    """
    if package not in PLACES:
        known = ", ".join(sorted(PLACES))
        raise UsageError(
            f"cannot read flags of {package!r} from its source; there is a way for {known}",
            remedy=f"make it from help: bringup engine.schema {package} VERSION --help-text FILE",
        )
    flags: dict[str, Flag] = {}
    variables: set[str] = set()
    top = PLACES[package][0].split("/", maxsplit=1)[0]
    for name, text in _texts(source):
        if not name.startswith(top) or "/test" in name:
            continue
        declares = any(fnmatch(name, place) for place in PLACES[package])
        if declares:
            flags |= {flag.name: flag for flag in flags_in(text)}
        if declares or package == top:
            variables |= set(variables_in(text))
    if not flags:
        raise UsageError(f"cannot find flags of {package} in {source}")
    return Schema(package, version, flags, frozenset(variables), "syntax trees of the wheel")


def _texts(source: Path) -> Iterator[tuple[str, str]]:
    """Yield name and text of every Python file; one that does not parse is left out."""
    for name, body in _files(source):
        text = body.decode("utf-8-sig", "replace")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # of their strings, not ours
            try:
                compile(text, name, "exec", dont_inherit=True, flags=0x400)
            except (SyntaxError, ValueError):
                continue
            yield name, text


def _files(source: Path) -> Iterator[tuple[str, bytes]]:
    if source.is_dir():
        for path in sorted(source.rglob("*.py")):
            yield path.relative_to(source).as_posix(), path.read_bytes()
        return
    try:
        with zipfile.ZipFile(source) as archive:
            for name in sorted(n for n in archive.namelist() if n.endswith(".py")):
                yield name, archive.read(name)
    except (OSError, zipfile.BadZipFile) as error:
        raise UsageError(f"cannot read {source}: {error}") from error
