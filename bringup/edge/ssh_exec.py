"""One command on a channel: send it and its input, collect what it says, within limits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import paramiko

from ..core.errors import Unreachable
from ..core.remote import Result
from ..core.words import command
from . import ssh_flight
from .hostscripts import KILL_AFTER_S, Shipment
from .output import Output

OPEN_S = 30.0
"""Most seconds for opening a channel, and for the server to start a command."""

GRACE_S = KILL_AFTER_S + 15.0
"""Seconds that an answer may take beyond the limit that the host itself enforces."""

LINGER_S = 2.0
"""A command has ended, but something it left running holds its output: not waited for longer."""

SLICE_S = 0.5


class Lost(Exception):
    """The line ended in the middle; carries how many bytes had come."""

    def __init__(self, why: str, received: int = 0) -> None:
        super().__init__(why)
        self.received = received


class _Wake(threading.Event):
    """Set by either buffer of a channel; cleared by the reader only, so that none is missed."""

    def clear(self) -> None:
        """Ignore the buffers, which clear it when one of them is empty."""

    def rearm(self) -> None:
        super().clear()


@dataclass(slots=True)
class Talk:
    """What a command is given and how long it may take."""

    shipment: Shipment
    seconds: float
    input: Iterable[bytes]
    out: Output
    error: Output


def exchange(channel: paramiko.Channel, talk: Talk, began: float) -> Result:
    """Follow a command to its end. Raises Lost, and Unreachable when it does not end in time."""
    with closing(channel):
        _feed(channel, talk)
        try:
            code = _collect(channel, talk, began + talk.seconds + GRACE_S)
        except (OSError, EOFError, paramiko.SSHException) as error:  # reading opens the window
            said = talk.out.total + talk.error.total
            raise Lost(str(error) or "the line closed", said) from error
    talk.out.end()
    talk.error.end()
    return Result(code, talk.out.text(), talk.error.text(), time.monotonic() - began)


def begin(
    transport: paramiko.Transport,
    shipment: Shipment,
    abort: Callable[[], None],
    spare: paramiko.Channel | None = None,
    *,
    flies: bool = False,
) -> paramiko.Channel:
    """Return a channel on which the words are being executed: a spare one, or one opened now.

    A server that `flies` is not waited for.
    """
    try:
        channel = spare or _open(transport)
        if flies:
            ssh_flight.execute(transport, channel, text_of(shipment))
            return channel
        with _limited(OPEN_S, abort):
            channel.exec_command(text_of(shipment))
    except paramiko.ChannelException as error:
        raise Unreachable(
            f"cannot start a command: the server opens no session ({error.text or error.code})",
            remedy="see MaxSessions and ForceCommand in its sshd_config",
        ) from error
    except (paramiko.SSHException, OSError, EOFError) as error:
        raise Lost(str(error) or "the line closed") from error
    return channel


def _open(transport: paramiko.Transport) -> paramiko.Channel:
    """Return a new channel. sshd forgets a closed one a moment later, which MaxSessions 1 shows."""
    for pause in (0.05, 0.3):
        try:
            return transport.open_session(timeout=OPEN_S)
        except paramiko.ChannelException:
            time.sleep(pause)
    return transport.open_session(timeout=OPEN_S)


def text_of(shipment: Shipment) -> str:
    """Return the text that a login shell is given."""
    return "exec " + command(shipment.words)


@contextmanager
def _limited(seconds: float, abort: Callable[[], None]) -> Iterator[None]:
    """End the line when the body takes too long: paramiko waits for exec without a limit."""
    timer = threading.Timer(seconds, abort)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def closing(channel: paramiko.Channel) -> Iterator[None]:
    """Close a channel afterwards, also one whose line is gone."""
    try:
        yield
    finally:
        with suppress(OSError, EOFError, paramiko.SSHException):
            channel.close()


def _feed(channel: paramiko.Channel, talk: Talk) -> None:
    """Send the input from a thread of its own, so that output can be read meanwhile."""
    if not talk.shipment.prefix and not talk.input:
        return
    channel.settimeout(talk.seconds + GRACE_S)

    def send() -> None:
        with suppress(OSError, EOFError, paramiko.SSHException):
            channel.sendall(talk.shipment.prefix)
            for piece in talk.input:
                channel.sendall(piece)

    threading.Thread(target=send, name="ssh-input", daemon=True).start()


def _collect(channel: paramiko.Channel, talk: Talk, deadline: float) -> int:
    """Read both streams to their end and return the exit code."""
    wake = _Wake()
    channel.in_buffer.set_event(wake)
    channel.in_stderr_buffer.set_event(wake)
    ended_at: float | None = None
    while not _at_end(channel):
        wake.wait(SLICE_S)
        wake.rearm()
        _drain(channel, talk, deadline)
        now = time.monotonic()
        if channel.status_event.is_set():
            ended_at = ended_at or now
            if now - ended_at > LINGER_S:
                break
        elif now > deadline:
            raise _no_answer(talk)
    return _exit_code(channel, talk)


def _at_end(channel: paramiko.Channel) -> bool:
    over = bool(channel.eof_received) or channel.closed
    return over and not channel.recv_ready() and not channel.recv_stderr_ready()


def _drain(channel: paramiko.Channel, talk: Talk, deadline: float) -> None:
    while channel.recv_ready() and time.monotonic() < deadline:
        talk.out.feed(channel.recv(65536))
    while channel.recv_stderr_ready() and time.monotonic() < deadline:
        talk.error.feed(channel.recv_stderr(65536))


def _exit_code(channel: paramiko.Channel, talk: Talk) -> int:
    """Return the exit code; 137 for a command that a signal ended. Raises Lost."""
    channel.status_event.wait(OPEN_S)
    if channel.exit_status != -1:
        return channel.exit_status
    if channel.eof_received:
        return 137
    raise Lost("the line closed", talk.out.total + talk.error.total)


def _no_answer(talk: Talk) -> Unreachable:
    return Unreachable(
        f"cannot get an answer: nothing ended within {talk.seconds + GRACE_S:.0f} s, though the"
        f" host was to stop the command after {talk.seconds:.0f} s",
        remedy="a process in state D cannot be killed: see ps and dmesg on the host",
    )


class ChannelSession:
    """A script that keeps running on a channel (actions.Session)."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel

    @property
    def ended(self) -> bool:
        return self._channel.closed or bool(self._channel.eof_received)

    def read_text(self, seconds: float) -> str:
        self._channel.settimeout(seconds)
        try:
            said = self._channel.recv(65536)
        except TimeoutError:
            return ""
        return said.decode("utf-8", "replace")

    def beat(self) -> bool:
        try:
            self._channel.sendall(b"\n")
        except (OSError, EOFError, paramiko.SSHException):
            return False
        return not self.ended

    def finish(self, seconds: float) -> None:
        with suppress(OSError, EOFError, paramiko.SSHException), closing(self._channel):
            self._channel.shutdown_write()
            self._channel.status_event.wait(seconds)
