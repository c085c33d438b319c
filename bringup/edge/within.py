"""Reads from inside a container or pod: any script goes through one more command."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.remote import Reader, Result
from ..core.words import command


@dataclass(frozen=True, slots=True)
class Within:
    """A reader whose scripts run under a command on another reader's host.

    Scripts that read under a host's root folder must be composed with root "/" here.
    """

    outer: Reader
    words: tuple[str, ...]

    def read(self, script: str, *, seconds: float) -> Result:
        """Run a script that only reads, inside. Raises Unreachable as the outer reader does."""
        return self.outer.read(command((*self.words, "sh", "-c", script)), seconds=seconds)


def within_container(outer: Reader, name: str, *, engine: tuple[str, ...] = ("docker",)) -> Within:
    """Return a reader inside a running container; `engine` may start with sudo."""
    return Within(outer, (*engine, "exec", "--interactive", name))


def within_pod(outer: Reader, target: str, *, namespace: str, container: str = "") -> Within:
    """Return a reader inside a pod (``deployment/NAME`` or ``pod/NAME``), where kubectl runs."""
    chosen = ("--container", container) if container else ()
    return Within(outer, ("kubectl", "--namespace", namespace, "exec", target, *chosen, "--"))
