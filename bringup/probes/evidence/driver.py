"""What lspci, modinfo, lsmod, dkms, dmesg and package managers told of the driver."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...core.reading import Absent, Known
from .. import kernel_log
from ..driver import Driver, read_proc
from ..kernel import Modules, read_lsmod
from ..kernel_log import KernelLog
from ..pci import PciGpu, PciGpus
from ..rdma import AccessControl
from ..readers import infiniband
from .asked import Asked, Output
from .piece import Piece, Readers, absent, known, unknown

_SLOT = r"(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])"
_NVIDIA = re.compile(rf"^{_SLOT}\s+(?:3D controller|VGA compatible controller|Display controller)"
                     r"(?: \[[0-9a-f]{4}\])?: NVIDIA Corporation (.*)$")  # fmt: skip


class Described(dict[str, str]):
    """What lspci calls each device, by full PCI address."""


def read_lspci(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `lspci`, with -D, -nn, -k or -vv, whole or through grep."""
    if output.is_missing or output.is_refused:
        return
    if "ACSCtl" in asked.pattern:
        yield from _access_control(output)
        return
    if (slot := asked.after("-s")) and not _NVIDIA.search(output.stdout):
        yield from _link(slot, output)
        return
    if asked.is_counted:
        yield from _counted(asked, output)
        return
    gpus = tuple(_gpus(output.stdout)) or tuple(_numbered(output.stdout))
    is_silent = not output.stdout.strip() and output.code in (0, 1) and not asked.has("-s")
    if gpus:
        count = None if asked.has("-s") else len(gpus)
        yield known(PciGpus(gpus, count), f"lspci: {len(gpus)} NVIDIA GPUs")
    elif is_silent and asked.matches("3D controller: NVIDIA Corporation"):
        yield absent(PciGpus, "lspci lists no NVIDIA GPU")
    if models := infiniband.models(_with_domain(output.stdout)):
        yield known(Described(models), "lspci")


def _access_control(output: Output) -> Iterator[Piece]:
    """Read the ACSCtl lines of all bridges: SrcValid+ sends traffic through the processor."""
    lines = re.findall(r"ACSCtl:\s*(.*)", output.stdout)
    on = tuple(f"bridge {n}" for n, line in enumerate(lines, 1) if "SrcValid+" in line)
    if lines:
        yield known(AccessControl(on, len(lines)), f"{len(on)} of {len(lines)} bridges: SrcValid+")


def _link(slot: str, output: Output) -> Iterator[Piece]:
    """Read link lines of one device that was asked for by its address."""
    can = re.search(r"LnkCap:.*?Width x(\d+)", output.stdout)
    now = re.search(r"LnkSta:.*?GT/s.*?, Width x(\d+)( \(downgraded\))?", output.stdout)
    if now:
        width = int(now[1])
        top = int(can[1]) if can else 16 if now[2] else None
        yield known(PciGpus((PciGpu(slot, width=width, width_max=top),)), output.line)


def _counted(asked: Asked, output: Output) -> Iterator[Piece]:
    number = output.stdout.strip()
    about = f"{asked.pattern} {' '.join(asked.words)}".lower()
    is_gpus = "nvidia" in about or "10de" in about
    if number.isdecimal() and is_gpus:
        if number == "0":
            yield absent(PciGpus, f"lspci counts {number} for {asked.pattern}")
        else:
            loose = asked.matches("05:00.0 Bridge: NVIDIA Corporation GH100 [H100 NVSwitch]")
            bus = PciGpus(None, int(number), is_loose=loose)
            yield known(bus, f"lspci counts {number} NVIDIA {'devices' if loose else 'GPUs'}")


def _gpus(text: str) -> Iterator[PciGpu]:
    """Yield GPUs with what the indented lines below each say of link and driver."""
    for head, *rest in _devices(text):
        if not (found := _NVIDIA.match(head)):
            continue
        body = "\n".join(rest)
        can = re.search(r"LnkCap:.*?Speed ([\d.]+)GT/s, Width x(\d+)", body)
        now = re.search(r"LnkSta:.*?Speed ([\d.]+)GT/s.*?, Width x(\d+)", body)
        driver = re.search(r"Kernel driver in use: (\S+)", body)
        yield PciGpu(
            f"{(found[1] or '0000').lower()}:{found[2].lower()}",
            name=found[3].strip(),
            driver=driver[1] if driver else "",
            width=int(now[2]) if now else None,
            width_max=int(can[2]) if can else None,
            is_gone="(rev ff)" in head or "Unknown header type 7f" in body,
        )


def _numbered(text: str) -> Iterator[PciGpu]:
    """Read `lspci -n`: ``1b:00.0 0302: 10de:2901 (rev a1)``."""
    for found in re.finditer(rf"(?m)^{_SLOT} 03(?:00|02): 10de:([0-9a-f]{{4}})(.*)$", text):
        bus = f"{(found[1] or '0000').lower()}:{found[2].lower()}"
        yield PciGpu(bus, found[3], is_gone="(rev ff)" in found[4])


def _devices(text: str) -> Iterator[list[str]]:
    device: list[str] = []
    for line in text.splitlines():
        if device and line[:1] in (" ", "\t"):
            device.append(line)
            continue
        if device:
            yield device
        device = [line] if line.strip() else []
    if device:
        yield device


def _with_domain(text: str) -> str:
    """lspci leaves domain 0000 out unless asked."""
    return re.sub(r"(?m)^([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?=\s)", r"0000:\1", text)


def read_modinfo(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `modinfo [-F field] MODULE`."""
    name = asked.path.replace("-", "_")
    if output.is_missing:
        return
    if "not found" in output.text:
        yield known(Modules((), installed={name: False}, whole=False), output.line)
        if name == "nvidia":
            yield known(Driver(on_disk=Absent(output.line)), output.line)
        return
    if output.code != 0:
        return
    yield known(Modules((), installed={name: True}, whole=False), f"modinfo {name}")
    if name == "nvidia":
        yield from _nvidia_on_disk(asked, output)


def _nvidia_on_disk(asked: Asked, output: Output) -> Iterator[Piece]:
    version = re.search(r"(?m)^(?:version:\s*)?(\d{3}(?:\.\d+)+)\s*$", output.stdout)
    licence = re.search(r"(?m)^(?:license:\s*)?(Dual MIT/GPL|NVIDIA)\s*$", output.stdout)
    if version:
        line = f"module on disk: {version[1]}"
        yield known(Driver(on_disk=Known(version[1], line)), line)
    if licence and asked.after("-F") in ("", "license"):
        # The licence of the file on disk tells the flavour of the module that it would load.
        yield known(Driver(is_open="MIT" in licence[1]), f"license: {licence[1]}")


def read_lsmod_command(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `lsmod`, whole or through grep."""
    if output.is_missing or output.is_refused or asked.is_counted:
        if asked.is_counted and output.stdout.strip() == "0":
            yield Piece(Modules, read_lsmod("", asked.pattern))
        return
    yield Piece(Modules, read_lsmod(output.stdout, asked.pattern))


def read_dkms(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `dkms status`: is there a module for the running kernel?"""
    del asked
    line = next((x.strip() for x in output.stdout.splitlines() if "nvidia" in x), "")
    if line:
        yield known(Driver(built=f"dkms: {line}"), line)


def read_log(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read the kernel's log. A grep that found nothing proves only what it looked for."""
    if output.is_refused or "read kernel buffer failed" in output.text:
        yield unknown(KernelLog, "the kernel log may not be read by this user", output.line)
        return
    if output.is_missing or output.code not in (0, 1):
        return
    if asked.is_counted:
        yield from _counted_reports(asked, output)
        return
    log = kernel_log.read(output.stdout)
    looks_for_xids = asked.matches(_AN_XID)
    is_about = looks_for_xids or asked.matches("NVRM: nvidia")
    if log.xids or log.switch_errors or log.complaints or is_about:
        yield known(
            KernelLog(
                log.xids if log.xids or looks_for_xids else None,
                log.complaints or None if asked.pattern else log.complaints,
                log.switch_errors,
            ),
            output.line,
        )


_AN_XID = "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off"


def _counted_reports(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read a number of lines: none of them is an answer, some leave open which they are."""
    number, pattern = output.stdout.strip(), asked.pattern.removeprefix("(?i)")
    if not (number.isdecimal() and asked.matches(_AN_XID)):
        return
    if number == "0":
        yield known(KernelLog(xids=()), f"no line of the log matches {pattern}")
    else:
        why = f"{number} lines of the log match {pattern}, and which was not told"
        yield unknown(KernelLog, why)


def read_proc_version(output: Output) -> Iterator[Piece]:
    """Read /proc/driver/nvidia/version."""
    if output.has_no_file:
        yield known(Driver(loaded=Absent(output.line)), output.line)
    elif output.code == 0:
        part = read_proc(output.stdout)
        yield known(part, output.line)


def read_module_version(output: Output) -> Iterator[Piece]:
    """Read /sys/module/nvidia/version."""
    word = output.stdout.strip()
    if output.has_no_file:
        yield known(Driver(loaded=Absent(output.line)), output.line)
    elif re.fullmatch(r"\d{3}(\.\d+)+", word):
        yield known(Driver(loaded=Known(word, f"module nvidia {word}")), f"module nvidia {word}")


def read_modprobe(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read what `modprobe nvidia` said when it failed: a key that was rejected, no such module."""
    if not asked.path.startswith("nvidia") or output.code == 0:
        return
    line = next((x.strip() for x in output.text.splitlines() if "modprobe:" in x), output.line)
    yield known(Driver(loaded=Absent(line), built=line), line)


def read_secure_boot(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `mokutil --sb-state`."""
    del asked
    if "SecureBoot enabled" in output.stdout:
        yield known(Driver(built="Secure Boot is enabled: modules need a trusted key"), output.line)


def read_library(output: Output) -> Iterator[Piece]:
    """Read `ls -l …/libcuda.so*` or `libnvidia-ml.so*`: the version is in the name."""
    found = re.findall(r"lib(?:cuda|nvidia-ml)\.so\.(\d{3}(?:\.\d+)+)", output.stdout)
    if found and len(set(found)) == 1:
        yield known(Driver(library=Known(found[0], f"library {found[0]}")), f"library {found[0]}")


def read_history(output: Output) -> Iterator[Piece]:
    """Read a package log for upgrades of the driver that nobody asked for."""
    unattended = "unattended-upgrade" in output.stdout
    line = next((x.strip() for x in output.stdout.splitlines()
                 if re.match(r"(?:Upgrade|Install): .*nvidia", x)), "")  # fmt: skip
    if line:
        how = "unattended-upgrade: " if unattended else ""
        yield known(Driver(upgraded=f"{how}{line}"), line)


def read_device_nodes(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `ls [-l] /dev/nvidia*`."""
    names = set(re.findall(r"/dev/(nvidia[\w-]*)", output.stdout))
    all_asked = any(
        word.startswith("/dev/nvidia*") or word == "/dev/nvidia" for word in asked.words
    )
    if output.has_no_file:
        gone = set(re.findall(r"'?/dev/(nvidia[\w*-]*)'?: No such file", output.text))
        uvm = False if {"nvidia-uvm", "nvidia*"} & gone else None
        yield known(Driver(uvm_node=uvm, gpu_nodes=0 if "nvidia*" in gone else None), output.line)
    elif names and output.code == 0:
        nodes = sum(1 for name in names if re.fullmatch(r"nvidia\d+", name))
        all_asked = all_asked and not (asked.is_cut or asked.is_partial(output))
        uvm = True if "nvidia-uvm" in names else False if all_asked else None
        yield known(Driver(uvm_node=uvm, gpu_nodes=nodes if all_asked else None),
                    f"/dev: {' '.join(sorted(names))}")  # fmt: skip


def read_bound(output: Output) -> Iterator[Piece]:
    """Read `ls /proc/driver/nvidia/gpus`: the GPUs that the driver holds."""
    found = re.findall(r"(?m)\b([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)\b", output.stdout)
    if output.has_no_file:
        yield known(Driver(bound=0), output.line)
    elif found:
        yield known(Driver(bound=len(set(found))), f"the driver holds {len(set(found))} GPUs")


READERS: Readers = {
    "lspci": read_lspci,
    "modinfo": read_modinfo,
    "lsmod": read_lsmod_command,
    "dkms": read_dkms,
    "dmesg": read_log,
    "modprobe": read_modprobe,
    "mokutil": read_secure_boot,
}
