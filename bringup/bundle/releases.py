"""What each release of Dynamo can read, and what it does when it cannot.

Sources: behaviour seen in ai-dynamo 1.3.0.post1 and 1.6.1 on loopback (tests/dynamo); for 1.4 and
1.5 the tokenizer names in the published binaries (docs/bundle.md).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.errors import UsageError
from ..core.reading import Known, Reading, Unknown
from ..core.version import version


@dataclass(frozen=True, slots=True)
class Release:
    """A release line: it begins at `first` and lasts until the next row's."""

    first: tuple[int, int, int]
    tiktoken: frozenset[str]  # model types whose tiktoken file it can read
    renderers: frozenset[str]  # model types whose chat text it makes without a template
    retries: bool  # tries again by itself after a model could not be added
    self_hosts: bool  # workers serve their files over HTTP unless told not to
    was_run: bool  # seen running, not only read

    @property
    def name(self) -> str:
        return ".".join(str(part) for part in self.first)


_KIMI_K2 = frozenset({"kimi", "kimi_k2", "kimi_k25", "deepseek_v3"})
_KIMI_K3 = _KIMI_K2 | {"kimi_linear", "kimi_k3"}

RELEASES = (
    Release((1, 3, 0), _KIMI_K2, frozenset(), retries=False, self_hosts=False, was_run=True),
    Release(
        (1, 4, 0), _KIMI_K2 | {"kimi_linear"}, frozenset(),
        retries=False, self_hosts=True, was_run=False,
    ),
    Release(
        (1, 5, 0), _KIMI_K3, frozenset({"kimi_k3"}), retries=True, self_hosts=True, was_run=False
    ),
    Release(
        (1, 6, 0), _KIMI_K3, frozenset({"kimi_k3"}), retries=True, self_hosts=True, was_run=True
    ),
)  # fmt: skip


def refuse_no_version(text: str) -> None:
    """Raise UsageError for a text that is given and names no version."""
    if text and version(text) is None:
        raise UsageError(
            f"cannot read --dynamo {text!r}: it is no version", remedy="as --dynamo 1.3.0.post1"
        )


def release_of(version: str) -> Reading[Release]:
    """Return the release line that a version such as ``1.3.0.post1`` belongs to.

    Unknown for a text that is no version and for releases before the first row.
    """
    match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", version.strip())
    if not match:
        return Unknown(
            "no version of Dynamo was given" if not version else f"no version: {version}"
        )
    parts = tuple(int(part or 0) for part in match.groups())
    fitting = [release for release in RELEASES if release.first <= parts]
    if not fitting:
        return Unknown(f"Dynamo {version} is older than {RELEASES[0].name}: nobody tried it here")
    return Known(fitting[-1], version)


def first_reading(model_type: str) -> Release | None:
    """Return the first release that reads the tiktoken file of a model type, or None."""
    return next((release for release in RELEASES if model_type in release.tiktoken), None)


def first_rendering(model_type: str) -> Release | None:
    """Return the first release that needs no template for a model type, or None."""
    return next((release for release in RELEASES if model_type in release.renderers), None)
