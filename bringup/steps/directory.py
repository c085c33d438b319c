"""Step kind: a folder that is there, with this mode and owner."""

from __future__ import annotations

import shlex

from ..core.steps import Run, Step
from ..core.words import HostPath, quote

_OBSERVE = """
d={path}
[ -e "$d" ] || {{ echo absent; exit 0; }}
[ -d "$d" ] || {{ echo "not a folder"; exit 0; }}
echo "folder $(stat -c {stat} "$d")"
"""


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
