"""Step kind: a file with this content, mode and owner."""

from __future__ import annotations

import hashlib
import shlex

from ..core.steps import Step, Write
from ..core.words import HostPath, quote

# Prints "absent", or "KIND MODE SUM" and, where the sum is not the wanted one, the content: up to
# 256 KiB, so that a diff can be shown without another trip.
OBSERVE = """
f={path}
if [ -L "$f" ]; then echo "link $(readlink "$f")"; exit 0; fi
if [ ! -e "$f" ]; then echo absent; exit 0; fi
[ -f "$f" ] || {{ echo "not a file"; exit 0; }}
sum=$(sha256sum <"$f") || exit 1
echo "file $(stat -c {stat} "$f") ${{sum%% *}}"
[ {show} = no ] || [ "${{sum%% *}}" = {sum} ] || head -c 262144 "$f"
"""


def file_step(write: Write, *, title: str = "", why: str = "") -> Step:
    """Return the step that makes a file so. Its content is shown as a diff unless it is secret."""
    sum_ = hashlib.sha256(write.content).hexdigest()
    owned = f" {write.owner}" if write.owner else ""
    observe = OBSERVE.format(
        path=quote(write.path),
        stat=shlex.quote("%a" + (" %U:%G" if write.owner else "")),
        sum=sum_,
        show="no" if write.secret else "yes",
    )
    return Step(
        id=f"file:{write.path}",
        title=title or f"write {write.path}",
        observe=observe,
        wanted=f"file {write.mode:o}{owned} {sum_}",
        actions=(write,),
        why=why,
        content=None if write.secret else write.content.decode("utf-8", "replace"),
    )


def text_file(path: str, text: str, *, mode: int = 0o644, title: str = "", why: str = "") -> Step:
    """Return the step for a text file on the host."""
    return file_step(Write(HostPath(path), text.encode(), mode), title=title, why=why)
