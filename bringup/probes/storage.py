"""Mounts, disks and arrays: where the weights lie and how much room is left."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.facts import Probe
from ..core.reading import Known, Reading, Unknown
from ..core.script import Section
from ..core.words import HostPath, quote
from .text import answered, rows, space, whole

NETWORK = (
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "beegfs", "ceph", "gpfs", "wekafs", "9p",
    "virtiofs", "afs", "glusterfs", "pvfs2", "orangefs", "s3fs", "juicefs", "gcsfuse", "sshfs",
    "rclone", "goofys", "davfs", "vast", "panfs",
)  # fmt: skip
"""Kinds of filesystem whose bytes come over a network; also as ``fuse.NAME``."""

MEMORY = ("tmpfs", "ramfs", "devtmpfs")

PSEUDO = (
    "autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts",
    "efivarfs", "fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs",
    "securityfs", "selinuxfs", "squashfs", "sysfs", "tracefs",
)  # fmt: skip
"""Kinds that hold no files of anybody; facts leave them out."""


@dataclass(frozen=True, slots=True)
class Mount:
    """One mounted filesystem."""

    path: str
    kind: str
    device: str = ""
    read_only: bool = False

    @property
    def is_network(self) -> bool:
        return self.kind.removeprefix("fuse.") in NETWORK

    @property
    def is_memory(self) -> bool:
        return self.kind in MEMORY


@dataclass(frozen=True, slots=True)
class Mounts:
    """Mounted filesystems with files, in the order of mounting."""

    mounts: tuple[Mount, ...]

    def of(self, path: str) -> Mount | None:
        """Return the filesystem that a path lies on: the longest mount point, the last of these."""
        over = [m for m in self.mounts if _lies_under(path, m.path)]
        return max(reversed(over), key=lambda m: len(m.path), default=None)


def _lies_under(path: str, folder: str) -> bool:
    return folder in ("/", path) or path.startswith(folder.rstrip("/") + "/")


@dataclass(frozen=True, slots=True)
class Disk:
    """Space under one folder in MiB. `trouble` says why nobody could look, then both are None."""

    path: str
    total_mib: int | None = None
    free_mib: int | None = None
    trouble: str = ""
    is_out_of_inodes: bool | None = None  # no file can be made, whatever bytes are free


@dataclass(frozen=True, slots=True)
class Disks:
    """Space under the folders that matter."""

    disks: tuple[Disk, ...]

    def of(self, path: str) -> Disk | None:
        """Return what is known of a folder that was asked about, or None."""
        return next((disk for disk in self.disks if disk.path == path), None)


@dataclass(frozen=True, slots=True)
class Array:
    """One software array. `members` of `wanted` work; `doing` is resync, recovery, check or ""."""

    name: str
    level: str = ""
    is_active: bool = True
    wanted: int | None = None
    members: int | None = None
    doing: str = ""


@dataclass(frozen=True, slots=True)
class Arrays:
    """All software arrays; none is a good answer."""

    arrays: tuple[Array, ...]


# From a container that has the host's / mounted, /proc/mounts would tell the container's mounts.
MOUNTS = r"""
f=$R/proc/1/mounts
[ -z "$R" ] && f=/proc/self/mounts
[ -r "$f" ] || f=$R/proc/mounts
cat "$f"
"""

_ESCAPE = re.compile(r"\\([0-7]{3})")


def parse_mounts(section: Section) -> Reading[Mounts]:
    """Read /proc/mounts, whose spaces are written as ``\\040``."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    found = [mount for line in answer.value.splitlines() if (mount := _mount(line.split(" ")))]
    if not found:
        return Unknown("no mount is listed", section.first)
    kept = tuple(mount for mount in found if mount.kind not in PSEUDO)
    return Known(Mounts(kept), f"{len(kept)} filesystems")


def _mount(words: list[str]) -> Mount | None:
    if len(words) < 4 or not words[1].startswith("/") or not re.fullmatch(r"[\w.-]+", words[2]):
        return None
    path = _ESCAPE.sub(lambda match: chr(int(match[1], 8)), words[1])
    return Mount(path, words[2], words[0], "ro" in words[3].split(","))


def disks_probe(paths: tuple[str, ...]) -> Probe[Disks]:
    """Return the question for the space under folders; one that hangs leaves the others."""
    looks = "\n".join(f"look {quote(path)} {quote(HostPath(path))}" for path in paths)
    script = f"""
limit=
command -v timeout >/dev/null && limit='timeout -k 1 2'
look() {{
  t=$($limit df -kP "$2" 2>&1); rc=$?
  printf 'disk\\t%s\\t%s\\t%s\\n' "$1" $rc "$(printf '%s\\n' "$t" | tail -n 1)"
}}
{looks}
"""
    return Probe("disks", Disks, script, parse_disks, seconds=3 * len(paths) + 2, volatile=True)


def parse_disks(section: Section) -> Reading[Disks]:
    """Return the space of each folder."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    disks = tuple(
        _disk(path, whole(code), rest[-1] if rest else "")
        for key, path, code, *rest in (row for row in rows(answer.value) if len(row) > 2)
        if key == "disk" and path.startswith("/")
    )
    if not disks:
        return Unknown("df told nothing", section.first)
    return Known(Disks(disks), ", ".join(f"{d.path} {_free(d)}" for d in disks))


def _disk(path: str, code: int | None, row: str) -> Disk:
    kib = space(row)
    if code == 0 and kib:
        return Disk(path, kib[0] // 1024, kib[1] // 1024)
    return Disk(path, trouble="no answer in 2 s" if code in (124, 137) else row or "df failed")


def _free(disk: Disk) -> str:
    return disk.trouble if disk.free_mib is None else f"{disk.free_mib // 1024} GiB free"


MDSTAT = r"""
[ -r "$R/proc/version" ] || [ -d "$R/proc/sys" ] || [ -e "$R/proc/mdstat" ] ||
  { echo "no /proc"; exit 4; }
[ -e "$R/proc/mdstat" ] || { echo "absent: no /proc/mdstat"; exit 3; }
cat "$R/proc/mdstat"
"""


def parse_mdstat(section: Section) -> Reading[Arrays]:
    """Read /proc/mdstat (https://docs.kernel.org/admin-guide/md.html)."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    if not re.search(r"(?m)^Personalities :", answer.value):
        return Unknown("/proc/mdstat is not what it should be", section.first)
    blocks = re.split(r"(?m)^(md\S+) : ", answer.value)
    arrays = tuple(
        _array(name, body) for name, body in zip(blocks[1::2], blocks[2::2], strict=False)
    )
    said = ", ".join(f"{a.name} {a.level} {a.members}/{a.wanted} {a.doing}".strip() for a in arrays)
    return Known(Arrays(arrays), said or "no arrays")


def _array(name: str, body: str) -> Array:
    head = body.partition("\n")[0].split()
    counts = re.search(r"\[([0-9]{1,4})/([0-9]{1,4})\]", body)
    doing = re.search(r"\b(resync|recovery|reshape|check|repair)\s*=", body)
    level = next((word for word in head if re.fullmatch(r"raid\d+|linear|multipath", word)), "")
    return Array(
        name,
        level,
        head[:1] == ["active"],
        int(counts[1]) if counts else None,
        int(counts[2]) if counts else None,
        doing[1] if doing else "",
    )


PROBES = (
    Probe("mounts", Mounts, MOUNTS, parse_mounts),
    disks_probe(("/", "/var/log", "/tmp")),  # noqa: S108 - asked about, nothing is written there
    Probe("arrays", Arrays, MDSTAT, parse_mdstat),
)
