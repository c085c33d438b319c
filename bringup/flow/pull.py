"""Have a host's engine pull, detached from our line: it goes on while the line is down."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..core.errors import CommandFailed, ToolError, Unreachable
from ..core.remote import Tunnel, Tunnels
from ..core.steps import Run
from ..core.words import HostPath, Secret, Word
from ..edge.engine import Engine

OnState = Callable[[str], None]

POLL_S = 0.5
LIMIT_S = 4 * 3600.0
"""Seconds that a pull may take in all: 40 GB over 30 Mbit/s."""
REOPEN_S = 2.0
"""Seconds before a dropped line is opened again. Docker retries a layer five times, in growing
waits of 5 s and more, and resumes it (https://github.com/moby/moby/blob/v20.10.24/distribution/
xfer/download.go), so the tunnel must be back within seconds."""


@dataclass(frozen=True, slots=True)
class RegistryLogin:
    """Credentials for a registry."""

    user: str
    password: Secret


# Fixed texts: values come as arguments. `setsid` takes the pull out of our session's group, so
# that it survives the end of the line that started it.
# A number alone may belong to anybody after a reboot: a process is known by its birth as well.
_BIRTH = r"""
birth() {
  set -- $(sed "s/.*) //" "/proc/$1/stat" 2>/dev/null)
  case ${1:-Z} in Z | X) ;; *) echo "${20} $(cat /proc/sys/kernel/random/boot_id)" ;; esac
}
"""
_ALIVE = f"""{_BIRTH}
d=$1
alive() {{
  pid="" born=""
  [ ! -f "$d/pid" ] || read -r pid born <"$d/pid"
  [ -n "$born" ] && [ "$(birth "$pid")" = "$born" ]
}}
"""
_PULL = f"""{_BIRTH}
d=$1 ref=$2; shift 2
echo "$$ $(birth $$)" >"$d/pid.new" && mv "$d/pid.new" "$d/pid" || exit
"$@" pull "$ref" >"$d/log" 2>&1
echo $? >"$d/rc.new"; mv "$d/rc.new" "$d/rc"
"""
_START = f"""{_ALIVE}
ref=$2 port=$3; shift 3
mkdir -p "$d" && printf '%s\\n' "$port" >"$d/port" || exit
if alive; then
  if [ "$(cat "$d/ref")" = "$ref" ]; then echo "still pulling"; exit 0; fi
  kill -s TERM -- "-$pid"
fi
rm -f "$d/rc" "$d/pid"; printf '%s\\n' "$ref" >"$d/ref"
setsid nohup sh -c '{_PULL}' sh "$d" "$ref" "$@" </dev/null >/dev/null 2>&1 &
tries=0
until [ -s "$d/pid" ] || [ "$tries" -ge 100 ]; do sleep 0.1; tries=$((tries + 1)); done
"""
_STATE = f"""{_ALIVE}
running=lost
if alive; then running=running; fi
if [ -f "$d/rc" ]; then echo "ended $(cat "$d/rc")"; else echo "$running"; fi
tail -n 40 "$d/log" 2>/dev/null
"""
_STOP = f"""{_ALIVE}
if alive; then kill -s TERM -- "-$pid"; fi
"""
_PORT = 'cat "$1/port" 2>/dev/null || echo 0'


def pull(
    engine: Engine,
    reference: str,
    folder: HostPath,
    *,
    tunnel_to: int = 0,
    login: RegistryLogin | None = None,
    reopens: int = 5,
    renew: Callable[[], None] = lambda: None,
    on_state: OnState = lambda _: None,
    seconds: float = LIMIT_S,
) -> str:
    """Pull a reference, in which PORT stands for the tunnel's port; return its name on the host.

    `renew` takes anew what went with a dropped line.

    Raises CommandFailed when the engine refuses, when the pull is killed or takes longer than
    `seconds`; Unreachable when the line stays down.
    """
    ends_at = time.monotonic() + seconds
    port = _last_port(engine, folder)
    for left in reversed(range(reopens + 1)):
        try:
            if left < reopens:
                renew()
            with _tunnel(engine, tunnel_to, port) as tunnel:
                port = tunnel.port if tunnel else 0
                named = reference.replace("PORT", str(port))
                _pull_once(
                    engine, named, folder, _watched(tunnel, on_state),
                    port=port, login=login, ends_at=ends_at,
                )  # fmt: skip
                return named
        except Unreachable:
            if not left:
                raise
            on_state("the line dropped; the engine goes on, opening it again")
            time.sleep(REOPEN_S)
    raise AssertionError("the last try returns or raises")


@contextlib.contextmanager
def _tunnel(engine: Engine, to_port: int, host_port: int) -> Iterator[Tunnel | None]:
    if not to_port:
        yield None
        return
    if not isinstance(engine.remote, Tunnels):
        raise ToolError(f"cannot open a tunnel to {engine.name}: this line carries none")
    with engine.remote.tunnel(to_port=to_port, host_port=host_port) as tunnel:
        yield tunnel


def _watched(tunnel: Tunnel | None, on_state: OnState) -> OnState:
    """Also look after the tunnel: a remote makes its line anew, but not what hung on it."""

    def tell(text: str) -> None:
        if tunnel is not None and not tunnel.alive:
            raise Unreachable("cannot go on pulling: the line that carried the tunnel dropped")
        on_state(text)

    return tell


def _last_port(engine: Engine, folder: HostPath) -> int:
    """Return the port of an earlier try: an engine that still retries knows no other."""
    said = engine.remote.run(Run(("sh", "-c", _PORT, "sh", folder))).stdout.strip()
    return int(said) if said.isdecimal() else 0


def _pull_once(
    engine: Engine,
    reference: str,
    folder: HostPath,
    on_state: OnState,
    *,
    port: int,
    login: RegistryLogin | None,
    ends_at: float,
) -> None:
    with logged_in(engine, login, reference) as more:
        started = engine.remote.run(
            Run(("sh", "-c", _START, "sh", folder, reference, str(port), *engine.words, *more))
        )
        if started.exit != 0:
            raise _failed(engine, reference, started.exit, started.tail())
        state = _wait(engine, folder, on_state, ends_at)
    code, _, log = state.partition("\n")
    if code == "lost":
        raise _failed(engine, reference, 137, f"{log}\nit was killed, or the host restarted")
    if code == "running":
        engine.remote.run(Run(("sh", "-c", _STOP, "sh", folder)))
        raise _failed(engine, reference, 124, f"{log}\nstopped: it took too long")
    if code != "ended 0":
        number = code.removeprefix("ended ")
        raise _failed(engine, reference, int(number) if number.isdecimal() else 1, log)
    engine.remote.run(Run(("rm", "-rf", folder)))


def _wait(engine: Engine, folder: HostPath, on_state: OnState, ends_at: float) -> str:
    """Follow a pull until it ends or its time is up; return its state and the end of its log."""
    while True:
        said = engine.remote.run(Run(("sh", "-c", _STATE, "sh", folder))).stdout
        lines = said.splitlines()
        if lines and lines[0] != "running":
            return said
        done = sum("Pull complete" in line or "Already exists" in line for line in lines)
        on_state(f"pulling: {done} layers done")
        if time.monotonic() > ends_at:
            return said
        time.sleep(POLL_S)


def _failed(engine: Engine, reference: str, code: int, log: str) -> CommandFailed:
    return CommandFailed(
        f"cannot pull {reference} on {engine.name}: exit {code}",
        ran=f"{' '.join(engine.words)} pull {reference}",
        exit_code=code,
        said="\n".join(log.strip().splitlines()[-10:]),
        remedy="run the same command again; layers that are there are not pulled twice",
    )


_ADOPT = r"""
named=$1 kept=$2; shift 2
"$@" tag "$named" "$kept" && "$@" image rm --no-prune "$named"
"""


def adopt(engine: Engine, named: str, kept: str) -> None:
    """Give what was pulled its lasting name, and take the registry's away."""
    words: tuple[Word, ...] = ("sh", "-c", _ADOPT, "sh", named, kept, *engine.words)
    result = engine.remote.run(Run(words))
    if result.exit != 0:
        raise _failed(engine, named, result.exit, result.tail())


@contextlib.contextmanager
def logged_in(
    engine: Engine, login: RegistryLogin | None, reference: str
) -> Iterator[tuple[str, ...]]:
    """Give the words that make an engine command use a login, which is gone afterwards."""
    if login is None:
        yield ()
        return
    folder = engine.make_folder()
    words = ("--config", folder)
    server = reference.partition("/")[0]
    try:
        engine.do(
            *words, "login", "--username", login.user, "--password-stdin", server,
            why=f"cannot log in to {server} as {login.user}",
            stdin=login.password.reveal.encode(),
        )  # fmt: skip
        yield words
    finally:
        engine.remove_folder(folder)
