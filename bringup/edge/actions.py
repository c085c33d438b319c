"""What a remote does, in terms of scripts; how a script gets to the host is its subclass's part."""

from __future__ import annotations

import secrets
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from ..core.errors import CommandFailed, ToolError, Unreachable, UsageError
from ..core.host import Host
from ..core.remote import Result
from ..core.script import LIMIT_BYTES
from ..core.steps import Push, Run, Write
from . import failures, host_files, hostscripts
from .host_files import CHUNK, pieces_of

WRITE_S = 120
"""Most seconds for one trip of files."""

BEAT_S = 20
SILENCE_S = 90
"""A lock's holder hears a beat every `BEAT_S`; after `SILENCE_S` without one it lets go."""

LOCK_ANSWER_S = 60
FINISH_S = 5.0


@dataclass(frozen=True, slots=True)
class Call:
    """One script to execute on a host, and what to feed it. Times in seconds."""

    script: str
    seconds: float
    input: Iterable[bytes] = field(default=(), repr=False)
    input_bytes: int = 0
    on_line: Callable[[str], None] | None = None
    only_reads: bool = False  # then it may be sent again where it is not known to have run


class Session(Protocol):
    """A script that keeps running: the lock's holder."""

    @property
    def ended(self) -> bool:
        """Whether it, or the line to it, is gone."""
        ...

    def read_text(self, seconds: float) -> str:
        """Return the next piece of what it says; "" once it ended, or when the time is up."""
        ...

    def beat(self) -> bool:
        """Send one line; False once it has ended."""
        ...

    def finish(self, seconds: float) -> None:
        """End its input and wait for it to clean up; never raises."""
        ...


class ScriptedRemote(ABC):
    """Reads, runs, writes, pushes and locks by way of scripts (core.remote.Remote)."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.held: Session | None = None

    @abstractmethod
    def exchange(self, call: Call) -> Result:
        """Execute a script within its limit and return how it ended."""

    @abstractmethod
    def start(self, script: str) -> Session:
        """Execute a script that ends when its input does."""

    def _perform(self, call: Call) -> Result:
        """Execute a script; raise CommandFailed where sudo did not let it begin."""
        result = self.exchange(call)
        fault = failures.of_sudo(self.host.name, self.host.login.user, result)
        if self.host.login.sudo and fault is not None:
            raise fault
        return result

    def read(self, script: str, *, seconds: float) -> Result:
        """Run a script that only reads, in one round trip."""
        program = script.encode()
        if len(program) < LIMIT_BYTES:
            return self._perform(Call(script, seconds, only_reads=True))
        call = Call("exec sh -s", seconds, pieces_of(program), len(program), only_reads=True)
        return self._perform(call)

    def run(self, action: Run, *, on_line: Callable[[str], None] | None = None) -> Result:
        """Run one command; its exit code is data, 124 where it ran out of time."""
        self._see_lock()
        script = hostscripts.run_script(action, root=self.host.root)
        pieces = pieces_of(action.input) if action.input else ()
        result = self._perform(Call(script, action.seconds, pieces, len(action.input), on_line))
        ran_out = result.exit in {137, 143} and result.seconds >= action.seconds
        return replace(result, exit=124) if ran_out else result

    def stream(
        self,
        action: Run,
        pieces: Iterable[bytes],
        size: int,
        *,
        on_line: Callable[[str], None] | None = None,
    ) -> Result:
        """Run one command with `size` bytes of a stream as its input; its exit code is data."""
        self._see_lock()
        script = hostscripts.run_script(action, root=self.host.root)
        return self._perform(Call(script, action.seconds, pieces, size, on_line))

    def write(self, files: tuple[Write, ...], *, then: str = "", seconds: float = 0.0) -> Result:
        """Write files atomically in one trip: each is old or new, whatever happens.

        A script `then` runs behind it and only reads; what it says is returned. Raises
        CommandFailed where a folder cannot be written, the disk is full, an owner does not exist,
        or a link or folder stands in the place of a file.
        """
        if not files:
            return self.read(then, seconds=seconds) if then else Result(0, "")
        self._see_lock()
        for file in files:
            check_target(file.path.path)
        trip = host_files.trip(files)
        script = host_files.write_script(
            trip, root=self.host.root, nonce=secrets.token_hex(6), then=then
        )
        stream, size = host_files.tar_of(trip), host_files.tar_size(trip)
        result = self._perform(Call(script, WRITE_S + seconds, stream, size))
        if result.exit != 0:
            raise failures.of_write(self.host.name, files, result)
        return result

    def push(self, action: Push, *, on_bytes: Callable[[int], None] | None = None) -> None:
        """Stream an archive, check its sum on the host, unpack it and swap it in by rename.

        `on_bytes` hears how many bytes have left so far. Raises CommandFailed.
        """
        self._see_lock()
        check_target(action.path.path)
        archive = Path(action.archive)
        try:
            size, unpack = archive.stat().st_size, unpacker(archive)
        except OSError as error:
            raise ToolError(
                f"cannot read the archive {archive}: {error.strerror}", host=self.host.name
            ) from error
        script = hostscripts.push_script(action, root=self.host.root, unpack=unpack)
        stream = _counted(read_pieces(archive), on_bytes)
        result = self._perform(Call(script, action.seconds, stream, size))
        if result.exit != 0:
            raise failures.of_push(self.host.name, action, result)

    @contextmanager
    def lock(self, details: str) -> Iterator[None]:
        """Hold the host's lock; it goes by itself when the line or the controller dies.

        Raises LockHeld, naming who holds it and since when.
        """
        nonce = secrets.token_hex(6)
        script = hostscripts.lock_script(
            details, root=self.host.root, nonce=nonce, silence_s=SILENCE_S
        )
        session = self.start(script)
        try:
            self._taken(answer_of(session, f"@@{nonce} "))
            self.held = session
            with _beating(session):
                yield
        finally:
            if self.held is session:
                self.held = None
            session.finish(FINISH_S)

    def _see_lock(self) -> None:
        """Change nothing once a lock that we took is gone: somebody else may hold it by now."""
        if self.held is not None and self.held.ended:
            raise Unreachable(
                f"cannot go on with {self.host.name}: its lock is lost, with the line or by a kill",
                host=self.host.name,
                remedy="run again: what was written is whole, the rest is done then",
            )

    def _taken(self, answer: str) -> None:
        """Return when the answer says that the lock is ours; raise what it says otherwise."""
        first, _, rest = answer.partition("\n")
        word, _, folder = first.strip().partition(" ")
        if word == "held":
            return
        if word == "busy":
            raise failures.of_lock(self.host.name, folder, rest)
        refused = failures.of_sudo(self.host.name, self.host.login.user, Result(1, "", answer))
        if self.host.login.sudo and refused is not None:
            raise refused
        if not answer:
            raise Unreachable(
                f"cannot lock {self.host.name}: no answer within {LOCK_ANSWER_S} s",
                host=self.host.name,
                remedy="see the host's load and its console, then run again",
            )
        raise CommandFailed(
            f"cannot lock {self.host.name}: no lock can be made in {folder or '/run/lock'}",
            ran="mkdir",
            exit_code=1,
            said=answer.strip(),
            host=self.host.name,
            remedy="see that the login may write to /run/lock or /tmp on the host",
        )


def answer_of(session: Session, mark: str) -> str:
    """Return what the holder says between its marks; a shell's start-up files may speak before."""
    said = ""
    deadline = time.monotonic() + LOCK_ANSWER_S
    while f"\n{mark}done\n" not in said and time.monotonic() < deadline:
        piece = session.read_text(max(0.1, deadline - time.monotonic()))
        if not piece:
            break
        said += piece
    return said.partition(mark)[2].partition(f"\n{mark}done\n")[0] or said


@contextmanager
def _beating(session: Session) -> Iterator[None]:
    """Send a beat now and then for as long as the body runs."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(BEAT_S) and session.beat():
            pass

    thread = threading.Thread(target=beat, name="lock-beat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()


def check_target(path: str) -> None:
    """Refuse a path that is not absolute and plain: it becomes part of a script's logic."""
    parts = path.split("/")
    if path.startswith("/") and not path.endswith("/") and not {".", ".."} & set(parts):
        return
    raise UsageError(f"cannot write to {path!r}: give an absolute path without . and ..")


def read_pieces(path: Path) -> Iterator[bytes]:
    """Yield a file's bytes, a chunk at a time."""
    with path.open("rb") as file:
        while piece := file.read(CHUNK):
            yield piece


def _counted(pieces: Iterable[bytes], on_bytes: Callable[[int], None] | None) -> Iterator[bytes]:
    sent = 0
    for piece in pieces:
        yield piece
        sent += len(piece)
        if on_bytes is not None:
            on_bytes(sent)


MAGIC = {b"\x1f\x8b": "gzip -dc", b"\x28\xb5\x2f\xfd": "zstd -dc", b"\xfd7zXZ": "xz -dc"}


def unpacker(archive: Path) -> str:
    """Return the command that makes a plain tar of an archive, by its first bytes."""
    with archive.open("rb") as file:
        head = file.read(6)
    return next((program for magic, program in MAGIC.items() if head.startswith(magic)), "cat")
