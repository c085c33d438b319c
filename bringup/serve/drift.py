"""What differs between a worker that runs and the one that its script would start."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from ..core.words import Secret
from ..engines.spec import Spec

SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|KEY$|CREDENTIAL", re.IGNORECASE)


def differences(spec: Spec, detail: str) -> tuple[str, ...]:
    """Return lines as ``- --tp-size 4`` (runs) and ``+ --tp-size 8`` (wanted).

    `detail` is what the observation of the worker printed: docker's Config, or words a line.
    """
    try:
        config = json.loads(detail) if detail.startswith("{") else None
    except ValueError:
        config = None
    if isinstance(config, dict):
        return tuple(_container(spec, config))
    return tuple(_words(detail.splitlines(), [str(word) for word in spec.command.argv]))


def _container(spec: Spec, config: Mapping[str, object]) -> Iterator[str]:
    image = str(config.get("Image") or "")
    if image and image not in (spec.image, spec.image_digest):
        yield f"- image {image}"
        yield f"+ image {spec.image}"
    program = [str(word) for word in _list(config.get("Entrypoint"))]
    words = [*program, *(str(word) for word in _list(config.get("Cmd")))]
    yield from _words(words, [str(word) for word in spec.command.argv])
    yield from _environment(spec, [str(word) for word in _list(config.get("Env"))])


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _words(runs: Iterable[str], wanted: Iterable[str]) -> Iterator[str]:
    """Compare options with their values; the order of options says nothing."""
    old, new = _options(runs), _options(wanted)
    yield from (f"- {option}" for option in old if option not in new)
    yield from (f"+ {option}" for option in new if option not in old)


def _options(words: Iterable[str]) -> list[str]:
    lines: list[str] = []
    for word in words:
        if lines and lines[-1].startswith("-") and not word.startswith("--"):
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _environment(spec: Spec, runs: Iterable[str]) -> Iterator[str]:
    """Only variables that a script sets count: an image has others of its own."""
    old = dict(line.partition("=")[::2] for line in runs)
    for name, value in sorted(spec.command.env.items()):
        shown = "***" if isinstance(value, Secret) or SECRET.search(name) else str(value)
        if name not in old:
            yield f"+ {name}={shown}"
        elif not isinstance(value, Secret) and old[name] != str(value):
            hidden = "***" if shown == "***" else old[name]
            yield from (f"- {name}={hidden}", f"+ {name}={shown}")
