"""One command of one SSH channel: a real process, its streams, and its end.

The command runs in a process group of its own. When the channel or the connection goes before the
command ends, the group gets HUP, then KILL: a lost line leaves nothing running.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import pty
import signal
import struct
import termios
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

from .hardware import Faults

LOG = logging.getLogger("lab")
PIECE = 64 * 1024
GRACE_S = 1.0
"""How long a process group has between HUP and KILL."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where commands of a host run, and how the host is sick. `groups` are those that run."""

    name: str
    home: Path
    environment: Mapping[str, str]
    faults: Faults
    groups: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Child:
    """A started command: its process, where its input goes, and where its output comes from."""

    process: asyncio.subprocess.Process
    stdin: asyncio.StreamWriter
    outputs: tuple[asyncio.StreamReader, ...]
    terminal: int = -1  # the controlling side of a pseudo-terminal


async def serve(place: Place, channel: asyncssh.SSHServerProcess[bytes]) -> None:
    """Run what the channel asks for, and report its end as OpenSSH's server does."""
    await asyncio.sleep(place.faults.slow_ms / 1000)
    child = await _start(place, channel)
    command = channel.command or "a shell"
    LOG.info("%s runs %s (%d bytes)", place.name, shortened(command), len(command))
    place.groups.add(child.process.pid)
    work = asyncio.ensure_future(_carry(place, channel, child))
    gone = asyncio.ensure_future(channel.wait_closed())
    is_through = False
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        is_through = work.done() and work.exception() is None
        if is_through:
            LOG.info("%s ended with %d", place.name, work.result())
            _report(channel, work.result())
    finally:
        for task in (work, gone):
            task.cancel()
        if not is_through:
            LOG.info("%s lost the line: its command is ended", place.name)
            child.stdin.close()  # as a server does: what watches its input hears of it
            await end_group(child.process.pid)
        await child.process.wait()


def shortened(command: str) -> str:
    """Return the beginning of a command on one line, for the log."""
    line = " ".join(command.split())
    return repr(line if len(line) <= 80 else f"{line[:79]}…")


async def _start(place: Place, channel: asyncssh.SSHServerProcess[bytes]) -> Child:
    words = ["/bin/sh", "-c", channel.command] if channel.command else ["/bin/sh"]
    allowed = {k: v for k, v in channel.env.items() if k.startswith(("LC_", "LANG"))}
    environment = {**allowed, **place.environment}
    if channel.term_type is not None:  # "" where the client has no TERM
        return await _start_on_terminal(place, channel, words, environment)
    process = await asyncio.create_subprocess_exec(
        *words, cwd=place.home, env=environment, start_new_session=True, limit=PIECE * 4,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    assert process.stderr
    return Child(process, process.stdin, (process.stdout, process.stderr))


async def _start_on_terminal(
    place: Place,
    channel: asyncssh.SSHServerProcess[bytes],
    words: list[str],
    environment: dict[str, str],
) -> Child:
    """Run the command on a pseudo-terminal of its own, for people who look around."""
    ours, theirs = pty.openpty()
    _resize(ours, channel.term_size)
    environment |= {"TERM": channel.term_type or "dumb", "PS1": f"{place.name}$ "}
    process = await asyncio.create_subprocess_exec(
        *words, cwd=place.home, env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(theirs)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    protocol = _TerminalReading(reader)
    await loop.connect_read_pipe(lambda: protocol, os.fdopen(ours, "rb", buffering=0))
    transport, flow = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(os.dup(ours), "wb", buffering=0)
    )
    writer = asyncio.StreamWriter(transport, flow, reader, loop)
    return Child(process, writer, (reader,), ours)


class _TerminalReading(asyncio.StreamReaderProtocol):
    """Reads a terminal: its last process going is an error (EIO) there, and means the end."""

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Keep what was read; an exception would discard it."""
        super().connection_lost(None)


def _resize(terminal: int, size: tuple[int, int, int, int]) -> None:
    columns, rows, width, height = size
    packed = struct.pack("HHHH", rows, columns, width, height)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, packed)


async def _carry(place: Place, channel: asyncssh.SSHServerProcess[bytes], child: Child) -> int:
    """Move bytes both ways until the output is through and the command has ended."""
    feed = asyncio.ensure_future(_feed(channel, child))
    try:
        sinks = (channel.stdout, channel.stderr)
        await asyncio.gather(
            *(
                _drain(source, sink, channel, place.faults)
                for source, sink in zip(child.outputs, sinks, strict=False)
            )
        )
        return await child.process.wait()
    finally:
        feed.cancel()


async def _feed(channel: asyncssh.SSHServerProcess[bytes], child: Child) -> None:
    """Hand the channel's input to the command, and its signals to the command's group."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        while True:
            try:
                data = await channel.stdin.read(PIECE)
            except asyncssh.SignalReceived as asked:
                _signal(child.process.pid, getattr(signal, f"SIG{asked.signal}", signal.SIGTERM))
                continue
            except asyncssh.TerminalSizeChanged as changed:
                if child.terminal >= 0:
                    _resize(child.terminal, changed.term_size)
                continue
            except asyncssh.BreakReceived:
                continue
            if not data:
                break
            child.stdin.write(data)
            await child.stdin.drain()
    child.stdin.close()


async def _drain(
    source: asyncio.StreamReader,
    sink: asyncssh.SSHWriter[bytes],
    channel: asyncssh.SSHServerProcess[bytes],
    faults: Faults,
) -> None:
    """Hand the command's output to the channel. A sick host stops midway."""
    sent, limit = 0, faults.drop_after_bytes or faults.freeze_after_bytes
    while data := await source.read(PIECE):
        data = data[: limit - sent] if limit else data
        sent += len(data)
        sink.write(data)
        await sink.drain()
        if limit and sent >= limit:
            await _break_off(channel, faults)


async def _break_off(channel: asyncssh.SSHServerProcess[bytes], faults: Faults) -> None:
    """Cut the line, or hold it without another byte, keepalive answers included."""
    connection = channel.channel.get_connection()
    if faults.drop_after_bytes:
        connection.abort()
    elif transport := getattr(connection, "_transport", None):  # no public way to its flow
        transport.pause_reading()
    await asyncio.sleep(3600)


def _report(channel: asyncssh.SSHServerProcess[bytes], status: int) -> None:
    if status >= 0:
        channel.exit(status)
    else:
        channel.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))


async def end_group(group: int) -> None:
    """Leave nothing of a process group behind."""
    _signal(group, signal.SIGHUP)
    _signal(group, signal.SIGCONT)
    for _ in range(20):
        if not _lives(group):
            return
        await asyncio.sleep(GRACE_S / 20)
    _signal(group, signal.SIGKILL)


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def forget_ended(place: Place) -> None:
    """Drop the groups that have no process any more, before their numbers are given out again."""
    place.groups.difference_update([group for group in place.groups if not _lives(group)])


def _lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
