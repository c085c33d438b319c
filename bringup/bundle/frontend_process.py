"""How a running frontend was started: asked from its host or from inside its container."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..core.reading import Absent, Known, Reading, Unknown
from ..core.script import Ask, Section
from ..core.words import HostPath, Word, command

PROCESS = "frontend-process"

# Of the environment only what steers a frontend, and nothing that may be a secret. The version is
# asked of the frontend's own Python, which alone knows its packages.
_SCRIPT = r"""
exec 2>/dev/null # processes come and go while we look
for p in /proc/[0-9]*; do
  tr '\0' '\n' <"$p/cmdline" | grep -qx 'dynamo\.frontend' || continue
  words=$(base64 <"$p/cmdline" | tr -d '\n')
  settings=$(tr '\0' '\n' <"$p/environ" |
    grep -E '^(DYN_[A-Z0-9_]*|ETCD_ENDPOINTS|HOME|HF_HUB_OFFLINE|HF_ENDPOINT)=' |
    grep -v -i -E '^[^=]*(PASS|SECRET|TOKEN|_KEY)[^=]*=' | base64 | tr -d '\n')
  python=$(tr '\0' '\n' <"$p/cmdline" | head -n 1)
  version=$("$python" -c 'from importlib.metadata import version as v; print(v("ai-dynamo"))')
  printf '%s %s %s %s\n' "${p#/proc/}" "$words" "${settings:--}" "${version:--}"
done
echo end
"""


LOG = "frontend-log"
LOG_BYTES = 900_000
"""How much of a log's end is read: below the cap of a section."""


def log_ask(words: Iterable[Word]) -> Ask:
    """Return the question for the end of a log, given the command that prints it."""
    script = f"""
said=$({command(words)} 2>&1); code=$?
printf '%s\\n' "$said" | tail -c {LOG_BYTES}
exit $code"""
    return Ask(LOG, script, 30)


def file_log(path: str) -> tuple[Word, ...]:
    """Return the command that prints the end of a log file."""
    return ("tail", "-c", str(LOG_BYTES), HostPath(path))


def container_log(name: str, *, engine: tuple[str, ...] = ("docker",)) -> tuple[Word, ...]:
    """Return the command that prints a container's log, on the container's host."""
    return (*engine, "logs", "--tail", "20000", name)


def pod_log(target: str, *, namespace: str, container: str = "") -> tuple[Word, ...]:
    """Return the command that prints a pod's log, where kubectl runs."""
    chosen = ("--container", container) if container else ()
    return ("kubectl", "--namespace", namespace, "logs", target, *chosen, "--tail", "20000")


def parse_log(section: Section) -> Reading[str]:
    """Return a log's text; unknown where it could not be printed whole."""
    if section.trouble or section.exit != 0:
        return Unknown(section.trouble or section.first, section.first)
    return Known(section.text)


def process_ask() -> Ask:
    """Return the question for running frontends and how each was started."""
    return Ask(PROCESS, _SCRIPT, 30)


@dataclass(frozen=True, slots=True)
class FrontendProcess:
    """One running frontend. Readings are absent where its settings leave them to the default."""

    pid: int
    words: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    version: str = ""

    def setting(self, flag: str, variable: str = "") -> str:
        """Return a flag's value, else its variable's, else ""."""
        for number, word in enumerate(self.words):
            if word == flag:
                return self.words[number + 1] if number + 1 < len(self.words) else ""
            if word.startswith(flag + "="):
                return word.partition("=")[2]
        return self.settings.get(variable, "") if variable else ""

    @property
    def namespace(self) -> str:
        return self.setting("--namespace", "DYN_NAMESPACE")

    @property
    def model_path(self) -> str:
        return self.setting("--model-path")

    @property
    def port(self) -> int:
        port = self.setting("--http-port", "DYN_HTTP_PORT")
        return int(port) if port.isdecimal() else 8000

    @property
    def processor(self) -> str:
        return self.setting("--dyn-chat-processor", "DYN_CHAT_PROCESSOR") or "dynamo"

    @property
    def discovery(self) -> str:
        """Its discovery backend: etcd, file, kubernetes or mem."""
        return self.setting("--discovery-backend", "DYN_DISCOVERY_BACKEND") or "etcd"

    @property
    def etcd(self) -> tuple[str, ...]:
        """Its etcd endpoints; () where it does not look into etcd."""
        urls = self.settings.get("ETCD_ENDPOINTS", "http://localhost:2379")
        return tuple(url.strip() for url in urls.split(",")) if self.discovery == "etcd" else ()


def parse_processes(section: Section) -> Reading[tuple[FrontendProcess, ...]]:
    """Return the frontends that run there; absent where surely none does."""
    lines = [line for line in section.text.split("\n") if line]
    if section.trouble or section.exit != 0 or not lines or lines[-1] != "end":
        return Unknown(section.trouble or "the answer was cut off", section.first)
    try:
        found = tuple(_process(line) for line in lines[:-1])
    except ValueError as error:
        return Unknown(f"cannot make sense of the answer: {error}", section.first)
    return Known(found) if found else Absent("no process runs dynamo.frontend")


def _process(line: str) -> FrontendProcess:
    pid, words, settings, version = line.split(" ")
    pairs = (row.partition("=") for row in _text(settings).splitlines())
    return FrontendProcess(
        int(pid),
        tuple(_text(words).rstrip("\0").split("\0")),
        {name: value for name, _, value in pairs},
        "" if version == "-" else version,
    )


def _text(data: str) -> str:
    if data == "-":
        return ""
    try:
        return base64.b64decode(data, validate=True).decode(errors="replace")
    except binascii.Error as error:
        raise ValueError(f"no base64: {error}") from error
