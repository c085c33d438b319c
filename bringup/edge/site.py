"""Where questions are asked: a host under its root folder, or the inside of a container or pod."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..core.errors import Unreachable
from ..core.host import Host
from ..core.remote import Reader, Result
from ..core.script import Ask, Section, compose, seconds_for, split
from ..core.words import command


@dataclass(frozen=True, slots=True)
class Site:
    """A place with a name for people, a reader, and the folder that its paths lie under."""

    name: str
    reader: Reader
    root: str = "/"

    def ask(self, asks: Iterable[Ask]) -> Mapping[str, Section]:
        """Return the answers to questions asked in one trip; unanswered ones are unfinished.

        Raises Unreachable when no answer came back.
        """
        questions = tuple(asks)
        nonce = secrets.token_hex(8)
        script = compose(questions, nonce=nonce, root=self.root)
        result = self.reader.read(script, seconds=seconds_for(questions))
        answer = split(result.stdout, nonce=nonce)
        if not answer.sections:
            raise Unreachable(
                f"cannot make sense of the answer of {self.name}",
                host=self.name,
                said=result.tail(),
                remedy="see above what it says; the inside of a container needs sh and base64",
            )
        return {ask.name: answer[ask.name] for ask in questions}

    def container(self, name: str, *, engine: tuple[str, ...] = ("docker",)) -> Site:
        """Return the inside of a running container on this host; `engine` may start with sudo."""
        return self._inside(name, (*engine, "exec", "--interactive", name))

    def pod(self, target: str, *, namespace: str, container: str = "") -> Site:
        """Return the inside of a pod (``deployment/NAME``, ``pod/NAME``); this runs kubectl."""
        chosen = ("--container", container) if container else ()
        words = ("kubectl", "--namespace", namespace, "exec", target, *chosen, "--")
        return self._inside(target, words)

    def _inside(self, name: str, words: tuple[str, ...]) -> Site:
        return Site(f"{name} on {self.name}", _Within(self.reader, words))


def site_of(host: Host, reader: Reader) -> Site:
    """Return a host as a site: its reader, and its root folder from the inventory."""
    return Site(host.name, reader, host.root)


@dataclass(frozen=True, slots=True)
class _Within:
    """A reader whose scripts run under a command on another reader's host."""

    outer: Reader
    words: tuple[str, ...]

    def read(self, script: str, *, seconds: float) -> Result:
        return self.outer.read(command((*self.words, "sh", "-c", script)), seconds=seconds)
