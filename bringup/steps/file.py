"""Step kind: a file with this content, mode and owner."""

from __future__ import annotations

import shlex

from ..core.document import sum_of
from ..core.steps import FileLook, Step, Write
from ..core.words import HostPath, quote

SHOWN_BYTES = 262_144
"""Most bytes of a file that are shown, so that a diff needs no other trip."""

# A file is only absent where one may look for it.
REACHED = r"""
reached() {
  d=${1%/*}
  while [ ! -d "${d:-/}" ]; do d=${d%/*}; done
  [ -x "${d:-/}" ]
}
"""

# Prints "absent", or "KIND MODE SUM" and, where the sum is not the wanted one, the content.
_OBSERVE = """
f={path}
if [ -L "$f" ]; then echo "link $(readlink "$f")"; exit 0; fi
if [ ! -e "$f" ]; then
  reached "$f" || {{ echo "Permission denied"; exit 1; }}
  echo absent
  exit 0
fi
[ -f "$f" ] || {{ echo "not a file"; exit 0; }}
sum=$(sha256sum <"$f") || exit 1
echo "file $(stat -c {stat} "$f") ${{sum%% *}}"
[ {show} = no ] || [ "${{sum%% *}}" = {sum} ] || head -c {shown} "$f"
"""


def observing(look: FileLook) -> str:
    """Return the sh text that looks at one file."""
    return REACHED + _OBSERVE.format(
        path=quote(HostPath(look.path)),
        stat=shlex.quote("%a" + (" %U:%G" if look.with_owner else "")),
        sum=shlex.quote(look.sum),
        show="yes" if look.shows else "no",
        shown=SHOWN_BYTES,
    )


def file_step(write: Write, *, title: str = "", why: str = "") -> Step:
    """Return the step that makes a file so. Its content is shown as a diff unless it is secret."""
    look = FileLook(write.path.path, sum_of(write.content), bool(write.owner), not write.secret)
    owned = f" {write.owner}" if write.owner else ""
    return Step(
        id=f"file:{write.path}",
        title=title or f"write {write.path}",
        observe=observing(look),
        wanted=f"file {write.mode:o}{owned} {look.sum}",
        actions=(write,),
        why=why,
        content=None if write.secret else write.content.decode("utf-8", "replace"),
        look=look,
    )


def text_file(path: str, text: str, *, mode: int = 0o644, title: str = "", why: str = "") -> Step:
    """Return the step for a text file on the host."""
    return file_step(Write(HostPath(path), text.encode(), mode), title=title, why=why)
