"""The work that every tool does: 25 facts to gather, and 20 files of 1.4 MB to place."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

FACTS = {
    "hostname": "cat /proc/sys/kernel/hostname",
    "kernel": "cat /proc/sys/kernel/osrelease",
    "machine": "uname -m",
    "system": ". /etc/os-release; echo $ID",
    "release": ". /etc/os-release; echo $VERSION_ID",
    "machine_id": "cat /etc/machine-id 2>/dev/null || echo none",
    "boot_id": "cat /proc/sys/kernel/random/boot_id",
    "uptime": "cut -d. -f1 /proc/uptime",
    "load": "cut -d' ' -f1-3 /proc/loadavg",
    "processors": "getconf _NPROCESSORS_ONLN",
    "model": "sed -n '/^model name/{s/.*: //p;q}' /proc/cpuinfo",
    "memory_kib": "sed -n 's/^MemTotal: *\\([0-9]*\\).*/\\1/p' /proc/meminfo",
    "swap_kib": "sed -n 's/^SwapTotal: *\\([0-9]*\\).*/\\1/p' /proc/meminfo",
    "free_kib": "df -Pk / | sed -n '2s/  */ /gp' | cut -d' ' -f4",
    "root_type": "sed -n 's,^[^ ]* / \\([^ ]*\\) .*,\\1,p' /proc/mounts | head -n 1",
    "route": "sed -n '2p' /proc/net/route",
    "interfaces": "echo /sys/class/net/*",
    "gpus": "grep -lE '^0x030[02]' /sys/bus/pci/devices/*/class 2>/dev/null | grep -c .; :",
    "driver": "cat /sys/module/nvidia/version 2>/dev/null || echo none",
    "nodes": "ls -d /sys/devices/system/node/node[0-9]* 2>/dev/null | grep -c .; :",
    "user": "id -u",
    "shell": "echo ${SHELL:-none}",
    "python": "command -v python3 || echo none",
    "zone": "cat /etc/timezone 2>/dev/null || echo unknown",
    "date": "date -u +%FT%TZ",
}

SIZES = (1_200, 2_048, 3_500, 4_096, 6_000, 8_192, 12_000, 16_384, 24_000, 48_000, 96_000,
         128_000, 200_000, 350_000, 500_580)  # fmt: skip
TEMPLATES = 5


def facts_script() -> str:
    """Return one sh script that prints a line for each fact."""
    return "".join(f"printf '%s=%s\\n' {k} \"$({v})\"\n" for k, v in FACTS.items())


@cache
def files() -> dict[str, bytes]:
    """Return the files that are the same on all hosts; half of their bytes compress well.

    A tool that is measured calls `read_payload` before, so that it reads and does not make them.
    """
    return _READ or {f"file{n:02}.bin": _content(n, size) for n, size in enumerate(SIZES)}


_READ: dict[str, bytes] = {}


def read_payload(folder: Path) -> None:
    """Take the files from where `write_payload` left them."""
    _READ.update((path.name, path.read_bytes()) for path in sorted((folder / "files").iterdir()))
    files()


def _content(number: int, size: int) -> bytes:
    content, seed = bytearray(), f"file {number}".encode()
    while len(content) < size:
        seed = hashlib.sha256(seed).digest()
        content += seed + seed.hex()[:32].encode()
    return bytes(content[:size])


def template(number: int) -> str:
    """Return a template whose text differs on each host."""
    head = f"# unit {number}\nhost = {{{{ host }}}}\naddress = {{{{ address }}}}\n"
    return head + "".join(f"key_{n} = {{{{ host }}}}-{n}\n" for n in range(40))


def rendered(number: int, host: str, address: str) -> bytes:
    """Return what a template should become, made without any template engine."""
    text = template(number).replace("{{ host }}", host).replace("{{ address }}", address)
    return text.encode()


def wanted(host: str, address: str) -> dict[str, bytes]:
    """Return all twenty files of one host by name."""
    texts = {f"unit{n}.conf": rendered(n, host, address) for n in range(TEMPLATES)}
    return files() | texts


def write_payload(folder: Path) -> None:
    """Write what tools read on the controller: files/ and templates/."""
    (folder / "files").mkdir(parents=True, exist_ok=True)
    (folder / "templates").mkdir(exist_ok=True)
    for name, content in files().items():
        (folder / "files" / name).write_bytes(content)
    for number in range(TEMPLATES):
        (folder / "templates" / f"unit{number}.conf.j2").write_text(template(number))
    (folder / "facts.sh").write_text(facts_script())
