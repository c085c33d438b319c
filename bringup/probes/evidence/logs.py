"""Logs of engines: of a container, a unit or a file, and what a start in the foreground printed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..engine_log import EngineLog, EngineLogs
from .asked import HOST, Asked, Output
from .piece import Piece, absent, known, unknown

_KEEPERS = ("docker", "podman", "nerdctl", "kubectl", "crictl", "oc")
"""Programs whose ``logs`` shows what a container wrote."""

_ENGINE = re.compile(
    r"(?i)vllm|sglang|dynamo|trtllm|worker|engine|serv(?:e|ing)|prefill|decode|frontend|llm|launch"
)
"""Names that people give to engines, their units and their logs."""

_OTHERS = re.compile(
    r"(?i)etcd|nats|registry|dcgm|exporter|prometheus|grafana|fabricmanager|slurm(?:ctl)?d\b"
    r"|docker\b|containerd|\bnfs"
)
"""Names of services that are no engines."""

_FILE = re.compile(r"\.(?:log|out|err)(?:\.\d+)?(?:\.gz)?$")

_SERVES = re.compile(
    r"\bvllm serve\b|\bsglang serve\b|-m (?:sglang\.launch_server|vllm\.entrypoints|dynamo\.)"
    r"|\btrtllm-serve\b|(?:\S*/)?(?:serve|start|launch)[\w-]*\.sh\b"
)
"""Command lines that start an engine in the foreground."""

_IMAGE_SERVES = re.compile(r"(?:vllm|sglang|dynamo)\S*(?: \S+)*? --model(?:-path)?\b")
"""An image whose own entry point is the engine's."""

_STOPPED = (124, 130, 143)
"""Exit codes of what somebody ended: a time limit, Ctrl-C, a request to stop."""

_QUESTIONS = ("--help", "-h", "--version")

_UNREAD = re.compile(
    r"(?i)no such container|no such file|permission denied|cannot connect to|not found|forbidden"
    r"|unauthorized|no journal files|connection refused|unknown (?:flag|shorthand)"
)
"""What those who show a log say where they cannot."""


def read_log(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read a log of an engine, whole or in part, whoever kept it."""
    if asked.is_counted:
        return
    if _is_start(asked):
        if not output.is_missing and output.text.strip():
            yield _log(asked, output, None if output.code in _STOPPED else output.code)
    elif _is_kept(asked) and not (asked.pattern and not output.text.strip()):
        yield _kept(asked, output)  # what a grep does not find is not told


def _kept(asked: Asked, output: Output) -> Piece:
    lines = [line for line in output.text.splitlines() if line.strip()]
    if not lines or lines == ["-- No entries --"]:
        return unknown(EngineLogs, "the log shows nothing", output.line)
    if output.code != 0 and len(lines) <= 2 and _UNREAD.search(output.text):
        gone = output.has_no_file or re.search(r"(?i)no such container", output.text)
        return absent(EngineLogs, output.line) if gone else _unread(output)
    return _log(asked, output, None)


def _unread(output: Output) -> Piece:
    why = "permission denied" if output.is_refused else output.line
    return unknown(EngineLogs, why, output.line)


def _log(asked: Asked, output: Output, code: int | None) -> Piece:
    source = _source(asked)
    return known(EngineLogs((EngineLog(source, output.text, code),)), source)


def _source(asked: Asked) -> str:
    """Return a log's name as somebody would ask for it; a long command by its beginning."""
    words = asked.path if asked.program == "cat" else " ".join((asked.program, *asked.words))
    short = f"{words[:57]}…" if len(words) > 58 else words
    return short if asked.place == HOST else f"{asked.place}: {short}"


def _is_start(asked: Asked) -> bool:
    """Tell whether a command runs an engine and shows what it prints."""
    if asked.has(*_QUESTIONS):
        return False
    line = " ".join((asked.program, *asked.words))
    if asked.program in _KEEPERS:
        is_run = asked.operands[:1] == ("run",) and not asked.has("-d", "--detach")
        return is_run and bool(_SERVES.search(line) or _IMAGE_SERVES.search(line))
    return not _FILE.search(asked.path) and _SERVES.match(_bare(line)) is not None


def _bare(line: str) -> str:
    """Return a command line from where the engine stands: ``python3 -m`` is a part of it."""
    return re.sub(r"^(?:uv run |python[\d.]* |-[uOBI]+ |torchrun |sh |bash )+", "", line)


def _is_kept(asked: Asked) -> bool:
    """Tell whether a command shows a log that an engine has written before."""
    if asked.program in _KEEPERS:
        return "logs" in asked.operands[:3] and not _OTHERS.search(asked.path)
    if asked.program == "journalctl":
        return any(re.match(r"-[a-z]*u|--unit", word) for word in asked.words) and _of_unit(asked)
    if asked.program == "systemctl":
        return asked.operands[:1] == ("status",) and _of_unit(asked)
    return asked.program == "cat" and _is_engines(asked.path)


def _of_unit(asked: Asked) -> bool:
    words = (word for word in asked.words if not word.startswith("--") or word.startswith("--unit"))
    units = " ".join(words)
    return bool(_ENGINE.search(units)) and not _OTHERS.search(units)


def _is_engines(path: str) -> bool:
    """A file of an engine: its name or its folder says so, or it is not one of the system's."""
    if not _FILE.search(path) or _OTHERS.search(path):
        return False
    return bool(_ENGINE.search(path)) or not path.startswith(("/var/log/", "/etc/", "/proc/"))
