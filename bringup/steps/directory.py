"""Step kind: a folder that is there, with this mode and owner."""

from __future__ import annotations

import shlex
from dataclasses import replace

from ..core.steps import Run, Step
from ..core.words import HostPath, quote

_OBSERVE = """
d={path}
[ -e "$d" ] || {{ echo absent; exit 0; }}
[ -d "$d" ] || {{ echo "not a folder"; exit 0; }}
echo "folder $(stat -c {stat} "$d")"
"""


_COVERED = """
awk -v at={path} '$2 == at {{ found = 1 }} END {{ exit !found }}' "$R/proc/self/mounts" \\
  && {{ echo {wanted}; exit 0; }}
"""


def under_a_mount(step: Step, path: str) -> Step:
    """Return a folder's step that lets be what is mounted there: its mode is not the folder's."""
    covered = _COVERED.format(path=quote(path), wanted=quote(step.wanted))
    return replace(step, observe=covered + step.observe)


def directory_step(path: str, *, mode: int = 0o755, owner: str = "", why: str = "") -> Step:
    """Return the step that makes a folder so, parents included; `owner` is ``user:group``."""
    place = HostPath(path)
    user, _, group = owner.partition(":")
    owner_words = (*(("-o", user) if user else ()), *(("-g", group) if group else ()))
    return Step(
        id=f"folder:{path}",
        title=f"make folder {path}",
        observe=_OBSERVE.format(
            path=quote(place), stat=shlex.quote("%a" + (" %U:%G" if owner else ""))
        ),
        wanted=f"folder {mode:o}" + (f" {owner}" if owner else ""),
        actions=(Run(("install", "-d", "-m", f"{mode:o}", *owner_words, place)),),
        why=why,
    )
