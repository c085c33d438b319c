"""Copy weights to hosts: several files at a time, from whoever has them, resumed after breaks."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..core.errors import CommandFailed, Interrupted, ToolError, VerifyFailed
from ..core.remote import Result
from ..core.words import Word
from ..edge.host_files import CHUNK
from ..edge.pool import each
from ..weights import scripts
from ..weights.folder import File
from ..weights.plan import BETWEEN, Way
from .weights_errand import Errand, Terms
from .weights_market import Market
from .weights_station import Keys, Station, carried, open_station

TRIES = 4
"""Times in a row that a file is asked for without a byte coming."""

AWAY = re.compile(r"refused|timed out|No route|unreachable|closed by|reset by", re.IGNORECASE)


@dataclass(slots=True)
class Copier:
    """Copies to many hosts at once."""

    way: Way
    terms: Terms
    sums: Mapping[str, str]  # SHA-256 to check on arrival
    files: tuple[File, ...]
    keys: Keys
    market: Market
    stations: list[Station]  # all that are open, to be ended with the run
    over: threading.Event = field(default_factory=threading.Event)  # the run ends

    def attempt(self, errand: Errand) -> None:
        """Fetch all that is pending on one host, under its lock.

        Raises Unreachable when the line drops, other ToolErrors where it cannot be done.
        """
        with errand.remote.lock("copies weights"), self._station(errand) as station:
            streams = range(min(self.terms.streams, max(1, len(errand.pending))))

            def stream(_: int) -> None:
                self._stream(errand, station)

            with contextlib.ExitStack() as errand.tunnels:
                errand.through = dict.fromkeys(errand.through, 0)
                for outcome in each(streams, stream, limit=len(streams)):
                    if isinstance(outcome.error, ToolError):
                        errand.error = errand.error or outcome.error
                    elif outcome.error is not None:
                        raise outcome.error
            if errand.error is None:
                errand.remote.run(scripts.forget(errand.plan.path, errand.plan.difference.stale))
        if errand.error is not None:
            raise errand.error

    @contextlib.contextmanager
    def _station(self, errand: Errand) -> Iterator[Station | None]:
        """Give a host its keys, and let it hand on what it has, for as long as the run lasts."""
        if self.way not in BETWEEN or errand.sees_it:
            yield None
            return
        station = open_station(
            errand.host, errand.remote, self.keys, errand.plan.path, self.files,
            serves=self.terms.relay and bool(errand.plan.folder.ground.sshd), port=self.terms.port,
        )  # fmt: skip
        self.stations.append(station)
        lacking = {file.name for file in errand.pending}
        self.market.join(station, tuple(f.name for f in self.files if f.name not in lacking))
        yield station

    def _stream(self, errand: Errand, station: Station | None) -> None:
        """Fetch file after file until none is left, or one of the host's streams failed."""
        try:
            while self._next(errand, station):
                pass
        except ToolError as error:
            errand.error = errand.error or error

    def _next(self, errand: Errand, station: Station | None) -> bool:
        if station is None:
            with errand.guard:
                file = errand.pending.pop(0) if errand.pending and not errand.error else None
            if file is not None:
                self._own(errand, file)
            return file is not None
        taken = self.market.take(errand.pending, errand.host.name, lambda: bool(errand.error))
        if taken is None:
            return False
        try:
            self._from(errand, station, *taken)
        finally:
            self.market.free(taken[1])
        return True

    def _from(self, errand: Errand, station: Station, file: File, source: Station) -> None:
        """Fetch one file from another host's station."""
        name = source.host.name
        address, port = self._door(errand, source)
        words = scripts.from_station(
            station.folder, user=source.user, address=address, port=port,
            number=errand.numbers[file.name],
        )  # fmt: skip
        result = self._fetch(errand, file, words, name)
        if result.exit == 0:
            self.market.has(errand.host.name, file.name)
            return
        said = last_words(result)
        self.market.put_back(errand.pending, file)
        if "is gone" in said:
            self.market.lost(name, file.name)
        elif name not in errand.through and source.alive and AWAY.search(said):
            errand.say(f"does not reach {address}:{port} of {name}; through this controller then")
            errand.through[name] = 0
        else:
            self._again(errand, file, name, said)
            self.market.revive(source)

    def _door(self, errand: Errand, source: Station) -> tuple[str, int]:
        """Return where a host finds another's station: its address, or a tunnel to it."""
        name = source.host.name
        is_carried = self.terms.carried or not source.is_direct or name in errand.through
        if not is_carried:
            return source.address, source.port
        with errand.guard:
            if name not in errand.through and not source.is_direct:
                errand.say(f"{name} cannot listen at {source.address}; through this controller")
            if not errand.through.get(name):
                tunnel = errand.tunnels.enter_context(carried(source, errand.remote))
                errand.through[name] = tunnel
        return "127.0.0.1", errand.through[name]

    def _own(self, errand: Errand, file: File) -> None:
        """Fetch one file from the host's own mount, or from this controller."""
        if errand.sees_it:
            words = scripts.from_mount(errand.place, file.name)
            result = self._fetch(errand, file, words, errand.place)
        else:
            result = self._send(errand, file)
        if result.exit != 0:
            errand.pending.append(file)
            self._again(errand, file, errand.place, last_words(result))

    def _send(self, errand: Errand, file: File) -> Result:
        at = errand.came.get(file.key, errand.parts.get(file.key, 0))
        path = Path(errand.place, file.name)
        run = scripts.fetch(
            errand.plan.path, file, scripts.from_stdin(at),
            rate=self.terms.rate_of_stream, sum_=self.sums.get(file.name, ""),
        )  # fmt: skip
        result = errand.remote.stream(
            run, _pieces(path, at), max(0, file.size - at),
            on_line=lambda line: errand.follow(file, line, "here"),
        )  # fmt: skip
        return self._judged(errand, file, result, "here")

    def _fetch(self, errand: Errand, file: File, words: tuple[Word, ...], source: str) -> Result:
        run = scripts.fetch(
            errand.plan.path, file, words,
            rate=self.terms.rate_of_stream, sum_=self.sums.get(file.name, ""),
        )  # fmt: skip
        result = errand.remote.run(run, on_line=lambda line: errand.follow(file, line, source))
        return self._judged(errand, file, result, source)

    def _judged(self, errand: Errand, file: File, result: Result, source: str) -> Result:
        """Return a result that may be tried again; raise what ends the host's copy."""
        if result.exit != 0 and self.over.is_set():
            raise Interrupted("cannot finish: the run was stopped", host=errand.host.name)
        if result.exit == scripts.FULL:
            raise _cannot_write(errand, file, result)
        if result.exit == scripts.OTHER:
            errand.came[file.key] = 0
            if errand.tries.get(f"other:{file.name}", 0):
                raise VerifyFailed(
                    f"cannot take {file.name} from {source}: other bytes come than it has by"
                    " its own account",
                    host=errand.host.name,
                    said=last_words(result),
                    remedy="see whether something writes to the folder there, and dmesg of both"
                    f" hosts for disk errors: bringup weights.check {source}:PATH --hashes",
                )
            errand.tries[f"other:{file.name}"] = 1
        return result

    def _again(self, errand: Errand, file: File, source: str, said: str) -> None:
        """Wait a little before the next try; raise CommandFailed after too many without a byte."""
        tried = errand.tries.get(file.name, 0) + 1
        errand.tries[file.name] = tried
        if tried > TRIES:
            raise CommandFailed(
                f"cannot fetch {file.name} from {source}",
                ran=f"fetch {errand.plan.path}/{file.name}",
                exit_code=scripts.CUT,
                said=said,
                host=errand.host.name,
                remedy="run the same command again: what arrived is kept",
            )
        errand.say(f"{file.name} broke off ({said.splitlines()[-1] if said else 'no word'}); again")
        time.sleep(min(8.0, 0.5 * 2**tried))


def last_words(result: Result) -> str:
    """Return what a fetch said of its trouble: the last lines of its standard error."""
    return "\n".join((result.stderr or result.stdout).strip().splitlines()[-3:])


def _pieces(path: Path, at: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(at)
        while piece := file.read(CHUNK):
            yield piece


def _cannot_write(errand: Errand, file: File, result: Result) -> CommandFailed:
    said = last_words(result)
    full = re.search(r"\s0\s+100%|No space left", said)
    why = "its disk is full" if full else "it cannot be written there"
    return CommandFailed(
        f"cannot write {errand.plan.path}/{file.name}: {why}",
        ran=f"fetch {errand.plan.path}/{file.name}",
        exit_code=result.exit,
        said=said,
        host=errand.host.name,
        remedy=f"see df -h {errand.plan.path} and ls -ld of it, free space, then run the same"
        " command again: what arrived is kept",
    )
