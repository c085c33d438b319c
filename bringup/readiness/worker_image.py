"""Does a container run the image that its name stands for by now? The question and the answer.

A container keeps the image that it was made from when the tag moves on. Both are asked of one
engine, by the same `image inspect`: a classic store names images by their description, containerd's
by their manifest (https://docs.docker.com/engine/storage/containerd/), so an ID of one says nothing
about an ID of the other. Between hosts the label `bringup.context` tells images apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..core.reading import Known, Reading, Unknown
from .stages import NOT_LOOKED, Held, Run, Worker

HELD = r"""
# held ENGINE ID NAME: the IDs of the image that a container was made from and of what its image's
# name stands for now; nothing where the engine does not know both.
held() {
  ids=$("$1" image inspect --format '{{.Id}}' "$2" "$3" 2>/dev/null) || return 0
  [ "$(printf '%s\n' "$ids" | wc -l)" -eq 2 ] || return 0
  printf '%s\n' "$ids" | tr '\n' ' ' | sed 's/ $//'
}
"""
"""Two IDs on one line. What cannot be told prints nothing, which is not a difference."""


def parse_held(line: str | None) -> Reading[Held]:
    """Return what `held` printed; unknown where nobody asked or the engine could not tell."""
    if line is None:
        return NOT_LOOKED
    words = line.split()
    if len(words) != 2:
        return Unknown("the engine does not know both images")
    return Known(Held(words[0], words[1]))


def is_pinned(worker: Worker) -> bool:
    """Whether a digest says which image is meant: then it is part of the configuration."""
    return "sha256:" in worker.image


def outdated(worker: Worker, run: Run) -> str:
    """Return in words that a worker's image is not what its name stands for by now, or ""."""
    if not worker.contained or is_pinned(worker) or not isinstance(run.held, Known):
        return ""
    held = run.held.value
    if held.made_from == held.stands_for:
        return ""
    name = worker.image or "its image's name"
    return f"runs image {short(held.made_from)}, {name} stands for {short(held.stands_for)} by now"


def short(identity: str) -> str:
    """Return the first 12 digits of an ID, as engines show it."""
    return identity.removeprefix("sha256:")[:12]


def drift(worker: Worker, run: Run) -> tuple[str, ...]:
    """Return in words how a running worker differs from what its script would start."""
    if not run.is_up or not run.config:
        return ()
    settings = () if run.config == worker.config else ("runs with other settings",)
    return (*settings, *filter(None, (outdated(worker, run),)))


def apart(runs: Iterable[tuple[Worker, Run]], builds: Sequence[str]) -> Mapping[str, str]:
    """Return which workers run another build of an image than others, in words by their keys.

    `builds` are contexts that were built, the newest first. Those of the newest build seen are
    as they should be; where no record names one, nobody knows who is behind, and all are told.
    """
    seen: dict[str, dict[str, str]] = {}
    for worker, run in runs:
        if run.is_up and run.context and not is_pinned(worker):
            seen.setdefault(worker.image, {})[worker.key] = run.context
    return {
        key: words
        for contexts in seen.values()
        if len(set(contexts.values())) > 1
        for key, words in _apart(contexts, builds).items()
    }


def _apart(contexts: Mapping[str, str], builds: Sequence[str]) -> dict[str, str]:
    newest = next((one for one in builds if one in contexts.values()), "")
    told: dict[str, str] = {}
    for key, context in contexts.items():
        if context == newest:
            continue
        others = (k for k, c in sorted(contexts.items()) if c != context and newest in ("", c))
        other, what = next(others), "a newer" if newest else "another"
        told[key] = f"runs build {short(context)}, {other} {what} one, {short(contexts[other])}"
    return told
