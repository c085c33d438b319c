"""Step kind: a file system that is mounted now and at every start."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.steps import Run, Step
from ..core.words import HostPath, quote
from .directory import directory_step, under_a_mount
from .edit import edited_file, mount_line

_OBSERVE = r"""
awk -v at={at} '$2 == at {{ found = "mounted " $1 " " $3 }}
  END {{ print found ? found : "not mounted" }}' "$R/proc/self/mounts"
"""


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of fstab. Paths hold no blanks."""

    source: str
    at: str
    kind: str
    options: str = "defaults"

    def __post_init__(self) -> None:
        if any(not part or set(" \t\n") & set(part) for part in (self.source, self.at, self.kind)):
            raise ValueError(f"cannot mount {self.source!r} at {self.at!r}: blank or empty")


def mount_steps(mount: Mount, *, why: str = "") -> tuple[Step, ...]:
    """Return the steps: the folder, our block in /etc/fstab, and the mount itself."""
    line = f"{mount.source} {mount.at} {mount.kind} {mount.options} 0 0"
    entry = edited_file(
        "/etc/fstab", mount_line(mount.at, line),
        title=f"mount {mount.at} at every start", why=why,
    )  # fmt: skip
    now = Step(
        id=f"mount:{mount.at}",
        title=f"mount {mount.source} at {mount.at}",
        observe=_OBSERVE.format(at=quote(mount.at)),
        wanted=f"mounted {mount.source} {mount.kind}",
        actions=(Run(("mount", HostPath(mount.at)), seconds=120),),
        why=why,
    )
    return under_a_mount(directory_step(mount.at, why=why), mount.at), entry, now
