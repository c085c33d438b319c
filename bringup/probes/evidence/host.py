"""What ordinary tools told of the host: names, memory, disks, clock, login, limits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ..access import Access, read_id, read_sudo
from ..clock import Clock, read_chrony, read_timedatectl
from ..environment import Environment
from ..identity import Identity, Uptime
from ..inside import Inside
from ..memory import Memory, SharedMemory
from ..model import ModelFolder
from ..storage import Disk, Disks, Mount, Mounts
from ..system import Limits, Processors, Stuck, shown, soft_limits
from ..text import limit, size_of, whole
from .asked import HOST, Asked, Output
from .nodes_in_dev import read_modes
from .piece import Piece, Readers, known, unknown

_UNITS = {"": 1, "K": 1, "M": 1024, "G": 1024**2, "T": 1024**3, "P": 1024**4}


def kib(word: str) -> int | None:
    """Return KiB of a size as df and free print it: 64M, 1.5T, 24684092, 64Mi."""
    found = re.fullmatch(r"(\d{1,15}(?:\.\d+)?)([KMGTP]?)(?:i?B?)?", word)
    return int(float(found[1]) * _UNITS[found[2]]) if found else None


def read_uname(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `uname -m`, `-r`, `-n`, `-a`."""
    word = output.stdout.strip()
    if output.code != 0 or not word:
        return
    if asked.has("-m", "-p", "-i") and "\n" not in word:
        yield known(Identity("", machine=word), word)
    elif asked.has("-r") and re.fullmatch(r"\d+\.\d+\S*", word.partition("\n")[0]):
        kernel = word.partition("\n")[0]
        yield known(Identity("", kernel=kernel), kernel)
    elif asked.has("-a") and len(parts := word.split()) > 3:
        machine = re.search(r"\b(x86_64|aarch64)\b", word)
        yield known(
            Identity(parts[1], kernel=parts[2], machine=machine[1] if machine else ""), word
        )


def read_uptime(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `uptime`: "up 3 min", "up 12 days, 4:05"."""
    del asked
    found = re.search(r"\bup\s+(?:(\d+) days?,\s*)?(?:(\d+):(\d\d)|(\d+) min)", output.stdout)
    if found:
        days, hours, minutes, lone = (int(part or 0) for part in found.groups())
        seconds = ((days * 24 + hours) * 60 + minutes + lone) * 60
        yield known(Uptime(seconds), output.line)


def read_hostname(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `hostname`."""
    word = output.stdout.strip()
    if output.code == 0 and not asked.words and re.fullmatch(r"[\w.-]+", word):
        yield known(Identity(word), word)


def read_virtual(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `systemd-detect-virt`."""
    del asked
    word = output.stdout.strip()
    if re.fullmatch(r"[a-z-]+", word):
        yield known(Identity("", virtual=word != "none"), f"systemd-detect-virt: {word}")


def read_release_file(output: Output) -> Iterator[Piece]:
    """Read /etc/os-release."""
    pairs = re.findall(r"(?m)^([A-Z_]+)=\"?(.*?)\"?$", output.stdout)
    told: dict[str, str] = dict(pairs)
    if told.get("ID"):
        yield known(
            Identity("", told["ID"], told.get("VERSION_ID", ""), told.get("PRETTY_NAME", "")),
            told.get("PRETTY_NAME", told["ID"]),
        )


def read_meminfo(output: Output) -> Iterator[Piece]:
    """Read lines of /proc/meminfo."""
    sizes = {k: int(v) for k, v in re.findall(r"(?m)^(\w+):\s+(\d+) kB", output.stdout)}
    if "MemTotal" in sizes and "MemAvailable" in sizes:
        yield _memory(sizes["MemTotal"], sizes["MemAvailable"])


def _memory(total: int, available: int) -> Piece:
    memory = Memory(total // 1024, available // 1024)
    return known(memory, f"MemAvailable {memory.available_mib} MiB of {memory.total_mib} MiB")


def read_free(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `free`, with -b, -k, -m, -g or -h."""
    row = re.search(r"(?m)^Mem:\s+(\S+)\s+\S+\s+\S+\s+\S+\s+\S+\s+(\S+)", output.stdout)
    if row is None:
        return
    scale = {"-m": "M", "-g": "G", "--mega": "M", "--giga": "G"}
    unit = next((scale[word] for word in asked.words if word in scale), "")
    total, available = (kib(w if re.search(r"[A-Za-z]", w) else w + unit) for w in row.groups())
    if total and available is not None:
        yield _memory(total, available)


def read_df(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `df [-h|-k|-BG|-T] [PATH…]`; -i counts files, not bytes."""
    if output.is_late and (path := asked.path).startswith("/") and path != "/":
        yield unknown(ModelFolder, "timed out", f"df {path} does not answer")
    if asked.has("-i", "-ih", "-hi", "--inodes"):
        yield from _inodes(output)
        return
    if asked.has("-T", "-hT", "-Th", "-kT", "--print-type"):
        yield from _types(output)
    block = next((w[2:] for w in asked.words if re.fullmatch(r"-B[KMGT]", w)), "")
    wanted = [word for word in asked.operands if word.startswith("/")]
    for line in output.stdout.splitlines():
        cells = line.split()
        if len(cells) < 6 or not re.fullmatch(r"\d+%|-", cells[-2]):
            continue
        path = wanted[0] if len(wanted) == 1 else cells[-1]
        total, free = (kib(f"{w}{block}" if w.isdecimal() else w) for w in (cells[-5], cells[-3]))
        if total is not None and free is not None:
            yield from _space(asked, path, cells, total, free)


def _inodes(output: Output) -> Iterator[Piece]:
    """Read files left from `df -i`: 100 % used is full, whatever bytes are free."""
    for used, path in re.findall(r"(?m)\s(\d+)%\s+(/\S*)$", output.stdout):
        yield known(Disks((Disk(path, is_out_of_inodes=used == "100"),)), output.line)


def _types(output: Output) -> Iterator[Piece]:
    """Read filesystems from `df -T`: device, kind, …, where it is mounted."""
    for line in output.stdout.splitlines():
        cells = line.split()
        if len(cells) == 7 and cells[-1].startswith("/"):
            mount = Mount(cells[-1], cells[1], cells[0])
            yield known(Mounts((mount,)), f"{mount.device} on {mount.path} type {mount.kind}")


def _space(asked: Asked, path: str, cells: list[str], total: int, free: int) -> Iterator[Piece]:
    row = " ".join(cells)
    if path == "/dev/shm":  # noqa: S108 - a path that is read about, not used
        if asked.place == HOST:
            yield known(SharedMemory(total // 1024, free // 1024), row)
        else:
            yield known(Inside(shm_mib=total // 1024), row)
    elif asked.place == HOST:
        yield known(Disks((Disk(path, total // 1024, free // 1024),)), row)


def read_filesystem(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `stat -f -c %T PATH`, `findmnt -T PATH`, `mount`."""
    if output.is_late and asked.path.startswith("/"):
        yield unknown(ModelFolder, "timed out", f"{asked.path} does not answer")
        return
    if asked.program == "stat":
        yield from read_modes(asked, output)
        kind = output.stdout.strip().split("\n")[0]
        if asked.has("-f", "-fc", "-f-c") and re.fullmatch(r"[\w/.-]+", kind) and asked.path:
            yield known(Mounts((Mount(asked.path, _kind(kind)),)), f"{asked.path}: {kind}")
        return
    found = re.findall(r"(?m)^(\S+) on (/\S*) type (\S+) \(([^)]*)\)", output.stdout)
    for device, path, kind, options in found:
        only = "ro" in options.split(",")
        yield known(Mounts((Mount(path, kind, device, only),)), f"{device} on {path} type {kind}")
    rows = re.findall(r"(?m)^(/\S*)\s+(\S+)\s+(\w[\w.]*)\s+(\S+)$", output.stdout)
    for path, device, kind, options in rows if asked.program == "findmnt" else ():
        only = "ro" in options.split(",")
        yield known(Mounts((Mount(path, kind, device, only),)), f"{device} on {path} type {kind}")


def _kind(name: str) -> str:
    """`stat -f` has names of its own: ext2/ext3 is any of the three."""
    return {"ext2/ext3": "ext4", "UNKNOWN": ""}.get(name, name)


def read_clock(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `timedatectl`, `chronyc tracking`."""
    reader = read_chrony if asked.program == "chronyc" else read_timedatectl
    clock = reader(output.stdout)
    if clock != Clock():
        yield known(clock, output.line)


def read_offset(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `ntpdate -q` or `ntpq -p`: an offset against another clock."""
    found = re.search(r"offset ([+-]?\d+\.\d+)", output.stdout)
    if found:
        yield known(Clock(offset_s=float(found[1]), by=asked.program), output.line)


def read_login(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `id`, `groups`, `whoami`, `sudo -n true`."""
    if asked.program == "sudo":
        answer = read_sudo(output.code, output.text)
        if answer:
            yield known(Access("", sudo=answer, said=output.line), output.line)
    elif asked.program == "id" and (access := read_id(output.stdout)):
        yield known(replace(access, sudo="none needed" if access.is_root else ""), output.line)
    elif asked.program == "groups" and output.code == 0:
        names = output.stdout.rpartition(":")[2].split()
        yield known(Access("", groups=tuple(names)), output.line)
    elif asked.program == "whoami" and output.code == 0:
        yield known(Access(output.stdout.strip()), output.line)


def read_ulimit(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `ulimit -l` (KiB) and `ulimit -n`."""
    value = limit(output.stdout.strip())
    if value is None:
        return
    if asked.has("-l"):
        bytes_ = value * 1024 if value > 0 else value
        host = Limits(memlock=bytes_)
        yield known(host if asked.place == HOST else Inside(memlock_kib=value), output.line)
    elif asked.has("-n"):
        host = Limits(files=value)
        yield known(host if asked.place == HOST else Inside(nofile=value), output.line)


def read_processors(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `nproc`, `lscpu`."""
    del asked
    count = whole(output.stdout.strip())
    if count:
        yield known(Processors(count, count), f"{count} processors")
    elif found := re.search(r"(?m)^CPU\(s\):\s+(\d+)$", output.stdout):
        nodes = re.search(r"(?m)^NUMA node\(s\):\s+(\d+)$", output.stdout)
        off = re.search(r"(?m)^Off-line CPU\(s\) list:\s+(\S+)$", output.stdout)
        online = re.search(r"(?m)^On-line CPU\(s\) list:\s+(\S+)$", output.stdout)
        number = (online and size_of(online[1])) or int(found[1])
        present = number + ((off and size_of(off[1])) or 0)
        yield known(Processors(number, present, int(nodes[1]) if nodes else None), found[0])


def read_limits(output: Output) -> Iterator[Piece]:
    """Read /proc/self/limits."""
    told = soft_limits(tuple(output.stdout.splitlines()))
    if told:
        limits = Limits(told.get("memlock"), told.get("files"), told.get("processes"))
        yield known(limits, f"memlock {shown(limits.memlock)}, files {shown(limits.files)}")


def read_variables(output: Output) -> Iterator[Piece]:
    """Read /proc/PID/environ, with its separators changed or not."""
    pairs = re.findall(r"([A-Z][A-Z0-9_]*)=([^\0\n]*)", output.stdout)
    if pairs:
        yield known(Environment(dict(pairs)), output.line)


def read_ps(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `ps` with a STAT column: processes that nothing wakes."""
    head, *rows = output.stdout.splitlines() or [""]
    columns = head.split()
    if asked.pattern and "PID" not in columns:  # the grep took the heading away
        named = asked.after("-eo", "-Ao", "-o", "axo", "-axo")
        columns, rows = named.upper().replace("STATE", "STAT").split(","), [head, *rows]
    place = next((columns.index(name) for name in ("STAT", "S") if name in columns), None)
    if place is None or "PID" not in columns:
        return
    name = next((columns.index(n) for n in ("COMMAND", "CMD", "COMM") if n in columns), -1)
    cells = [row.split(None, len(columns) - 1) for row in rows if row.strip()]
    stuck = tuple(
        f"{row[name].strip()} ({row[columns.index('PID')]})"
        for row in cells
        if len(row) == len(columns) and row[place].startswith("D")
    )
    if stuck or not asked.pattern:
        yield known(Stuck(stuck), ", ".join(stuck) or "no process is stuck")


READERS: Readers = {
    "ps": read_ps,
    "uname": read_uname,
    "uptime": read_uptime,
    "hostname": read_hostname,
    "systemd-detect-virt": read_virtual,
    "free": read_free,
    "df": read_df,
    **dict.fromkeys(("stat", "mount", "findmnt"), read_filesystem),
    **dict.fromkeys(("timedatectl", "chronyc"), read_clock),
    **dict.fromkeys(("ntpdate", "ntpq"), read_offset),
    **dict.fromkeys(("id", "groups", "whoami", "sudo"), read_login),
    "ulimit": read_ulimit,
    **dict.fromkeys(("nproc", "lscpu"), read_processors),
}
