"""The way round a bundle: workers serve their own files to frontends over HTTP.

A decision, not a default: it ties every start of a frontend to the workers' ports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..core.reading import Absent, Known, Reading, Unknown
from ..core.script import Ask, Section
from ..core.words import quote
from .releases import Release

REACH = "reach-worker"

LARGEST_PORT = 32767
"""Dynamo reads DYN_SYSTEM_PORT as a signed 16-bit number: a worker with a larger one dies at start.

Seen in 1.3.0.post1 and 1.6.1: ``invalid value unsigned int `53367`, expected i16``.
"""

CONDITION = (
    "every frontend reaches every worker at DYN_SYSTEM_HOST:DYN_SYSTEM_PORT, now and whenever it "
    "starts anew; the port has no login and no encryption"
)


@dataclass(frozen=True, slots=True)
class SelfHosting:
    """Whether workers should serve their files, with the environment that makes them do so."""

    offered: bool
    why: str
    environment: Mapping[str, str]
    condition: str = CONDITION


def advise(release: Reading[Release], *, port: int | None, reached: Reading[bool]) -> SelfHosting:
    """Return whether to do without a bundle. `port` is the workers' DYN_SYSTEM_PORT, or None.

    Offered only where a frontend was seen to reach the port: what nobody tried is no yes.
    """
    environment = {"DYN_SELF_HOST_METADATA": "1", "DYN_SYSTEM_PORT": str(port or "PORT")}
    match release:
        case Known(line) if line.self_hosts:
            environment.pop("DYN_SELF_HOST_METADATA")
            default = f"Dynamo {release.evidence} does so by itself once the worker has a port"
        case Known():
            default = f"Dynamo {release.evidence} does so only when told"
        case Absent() | Unknown():
            default = "since 1.4 it is the default, before that a worker has to be told"
    if port is None:
        return SelfHosting(False, f"no DYN_SYSTEM_PORT is set; {default}", environment)
    if port > LARGEST_PORT:
        why = f"a worker dies at start with a DYN_SYSTEM_PORT above {LARGEST_PORT}: {port}"
        return SelfHosting(False, why, environment)
    match reached:
        case Known(True):
            return SelfHosting(True, f"the frontend reaches the port; {default}", environment)
        case Known(False):
            why = "the frontend does not reach the worker's port: place a bundle"
            return SelfHosting(False, why, environment)
    why = reached.why if isinstance(reached, Unknown) else "nobody tried"
    return SelfHosting(False, f"not known whether the frontend reaches it: {why}", environment)


_REACH = r"""
h={host} p={port}
for try in python3 curl bash; do
  command -v $try >/dev/null || continue
  case $try in
  python3) python3 -c 'import socket, sys
try: socket.create_connection((sys.argv[1], int(sys.argv[2])), 3).close()
except OSError as error: print("refused:", error); sys.exit(0)
print("reached")' "$h" "$p" ;;
  curl) if curl -s -m 3 -o /dev/null "http://$h:$p/live"; then echo reached
    else echo "refused: curl exit $?"; fi ;;
  bash) if bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$h" "$p" 2>/dev/null; then echo reached
    else echo refused; fi ;;
  esac
  exit 0
done
echo "nothing to try it with" >&2
exit 4
"""


def reach_ask(host: str, port: int) -> Ask:
    """Return the question whether a port is reached, asked from where the frontend runs."""
    return Ask(REACH, _REACH.format(host=quote(host), port=quote(str(port))), 10)


def parse_reach(section: Section) -> Reading[bool]:
    """Return whether the port was reached; unknown where nothing could try."""
    if section.trouble or section.exit != 0:
        return Unknown(section.trouble or section.first, section.first)
    if section.first.startswith("reached"):
        return Known(True, section.first)
    return Known(False, section.first) if section.first.startswith("refused") else Unknown(
        "no answer", section.first
    )  # fmt: skip
