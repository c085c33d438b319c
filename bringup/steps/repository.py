"""Step kind: a package repository of apt, with the key that signs it."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.steps import Step
from .file import text_file


@dataclass(frozen=True, slots=True)
class Repository:
    """One repository: its address, suite, components, and its armoured public key."""

    name: str
    uri: str
    key: str
    suite: str = "./"
    components: tuple[str, ...] = ()


def repository_steps(repository: Repository, *, why: str = "") -> tuple[Step, Step]:
    """Return the steps for the key and for the source that it alone signs."""
    key = f"/etc/apt/keyrings/{repository.name}.asc"
    lines = [
        "Types: deb",
        f"URIs: {repository.uri}",
        f"Suites: {repository.suite}",
        *([f"Components: {' '.join(repository.components)}"] if repository.components else []),
        f"Signed-By: {key}",
    ]
    source = "\n".join(lines) + "\n"
    return (
        text_file(key, repository.key, title=f"keep the key of {repository.name}", why=why),
        text_file(
            f"/etc/apt/sources.list.d/{repository.name}.sources", source,
            title=f"add the repository {repository.name}", why=why,
        ),
    )  # fmt: skip
