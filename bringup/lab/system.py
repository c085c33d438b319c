"""A practice host's operating system: /etc, /proc, model folders and mounts."""

from __future__ import annotations

import json
from collections.abc import Iterator

from .hardware import USER, Hardware, address, invented
from .software import ModelFolder, Mount
from .tree import Entry, File, Folder, Sparse, Tree

_MODULE_SIZES = {"nvidia": 14299136, "nvidia_uvm": 1830912, "mlx5_core": 2510848, "mlx5_ib": 524288}
_GIB = 1 << 30


def files(hardware: Hardware) -> Tree:
    """Return the files of the system."""
    return dict(_entries(hardware))


def _entries(hardware: Hardware) -> Iterator[tuple[str, Entry]]:
    yield from _identity(hardware)
    yield from _processes(hardware)
    yield from _network(hardware)
    for path in ("/tmp", "/var/tmp", "/dev/shm"):  # noqa: S108 - folders of the practice host
        yield path, Folder(0o1777)
    for path in (f"/home/{USER}", "/root", "/run/lock", "/var/log", "/opt", "/srv"):
        yield path, Folder()
    for mount in hardware.mounts:
        if mount.path != "/":
            yield mount.path, Folder()
    for model in hardware.models:
        yield from _model(model)
    for name, text in {
        "limits": _limits(),
        "mounts": _mounts(hardware),
        "status": "Name:\tsh\nCpus_allowed_list:\t" + f"0-{hardware.cpu.count - 1}\n",
        "cgroup": "0::/user.slice\n",
    }.items():
        yield f"/proc/self/{name}", File(text)
    yield "/proc/mounts", File(_mounts(hardware))
    yield "/usr/lib/lab/df/disks", File("".join(_disk(mount) for mount in _disks(hardware)))
    yield "/var/log/dmesg", File(_kernel_log(hardware))
    yield from _kernel(hardware)


def _identity(hardware: Hardware) -> Iterator[tuple[str, Entry]]:
    os = hardware.os
    release = {
        "PRETTY_NAME": os.name, "NAME": os.id.capitalize(), "VERSION_ID": os.version,
        "VERSION": f"{os.version} ({os.codename.capitalize()})", "VERSION_CODENAME": os.codename,
    }  # fmt: skip
    text = "".join(f'{key}="{value}"\n' for key, value in release.items())
    yield "/etc/os-release", File(f"{text}ID={os.id}\n")
    yield "/etc/hostname", File(f"{hardware.name}\n")
    yield "/etc/hosts", File(f"127.0.0.1 localhost\n{address(hardware.name)} {hardware.name}\n")
    yield "/etc/resolv.conf", File("nameserver 127.0.0.53\n")
    yield "/etc/machine-id", File(f"{invented(hardware.name, 'machine')[:32]}\n")
    yield "/proc/sys/kernel/hostname", File(f"{hardware.name}\n")
    yield "/proc/sys/kernel/osrelease", File(f"{os.kernel}\n")
    yield "/proc/sys/kernel/numa_balancing", File("0\n")
    yield "/proc/version", File(f"Linux version {os.kernel} (builder@buildhost) #91-Ubuntu SMP\n")
    yield "/proc/cmdline", File(f"BOOT_IMAGE=/boot/vmlinuz-{os.kernel} {os.command_line}\n")
    yield "/sys/devices/virtual/dmi/id/sys_vendor", File("Example Systems\n")


def _processes(hardware: Hardware) -> Iterator[tuple[str, Entry]]:
    total = hardware.memory_gib * 1024 * 1024
    yield "/proc/meminfo", File(_memory(total))
    yield "/proc/cpuinfo", File(_cpus(hardware))
    yield "/proc/modules", File("".join(_module(name) for name in sorted(hardware.modules)))
    yield "/proc/uptime", File("864000.00 200000000.00\n")
    yield "/proc/loadavg", File("1.02 0.98 0.91 2/4096 12345\n")
    yield "/proc/swaps", File("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n")
    yield "/proc/mdstat", File("Personalities : [raid0]\nunused devices: <none>\n")
    yield "/proc/sys/vm/nr_hugepages", File("0\n")
    yield "/proc/sys/vm/swappiness", File("10\n")


def _kernel(hardware: Hardware) -> Iterator[tuple[str, Entry]]:
    """Modules on disk for the running kernel, and the reader's own place in /proc."""
    base = f"/lib/modules/{hardware.os.kernel}"
    files = {
        name: f"updates/dkms/{name}.ko.zst"
        if name.startswith("nvidia")
        else f"kernel/{name}.ko.zst"
        for name in (*hardware.modules, *hardware.modules_on_disk)
    }
    yield f"{base}/modules.dep", File("".join(f"{path}:\n" for path in files.values()))
    yield from ((f"{base}/{path}", File("")) for path in files.values())
    yield "/proc/self/stat", File("4711 (sh) S 1 4711 4711 0 -1 4194304\n")


def _kernel_log(hardware: Hardware) -> str:
    lines = [f"Linux version {hardware.os.kernel}", *hardware.kernel_log]
    if hardware.driver:
        flavour = "Open Kernel Module for x86_64" if hardware.driver.module == "open" else "x86_64"
        lines.insert(1, f"NVRM: loading NVIDIA UNIX {flavour}  {hardware.driver.version}")
    return "".join(f"[{second:>5}.000000] {line}\n" for second, line in enumerate(lines))


def _disks(hardware: Hardware) -> tuple[Mount, ...]:
    half = hardware.memory_gib // 2
    return (*hardware.mounts, Mount("tmpfs", "/dev/shm", "tmpfs", size_gib=half, used_gib=0))  # noqa: S108


def _disk(mount: Mount) -> str:
    size, used = mount.size_gib << 20, mount.used_gib << 20
    return f"{mount.device} {mount.path} {mount.type} {size} {used}\n"


def _memory(total: int) -> str:
    """Return /proc/meminfo for a total in KiB."""
    available = total - total // 50
    rows = {
        "MemTotal": total, "MemFree": available - total // 10, "MemAvailable": available,
        "Buffers": 524288, "Cached": total // 10, "SwapCached": 0, "SwapTotal": 0, "SwapFree": 0,
        "Shmem": 16384, "Hugetlb": 0,
    }  # fmt: skip
    text = "".join(f"{name + ':':<15} {value:>10} kB\n" for name, value in rows.items())
    return (
        text + "HugePages_Total:       0\nHugePages_Free:        0\nHugepagesize:       2048 kB\n"
    )


def _cpus(hardware: Hardware) -> str:
    cpu = hardware.cpu
    common = {"vendor_id\t": "GenuineIntel", "model name\t": cpu.model}
    counts = {"siblings\t": cpu.cores * cpu.threads, "cpu cores\t": cpu.cores}
    text = ""
    for number in range(cpu.count):
        place = {
            "physical id\t": number // cpu.cores % cpu.sockets,
            "core id\t\t": number % cpu.cores,
        }
        rows = {"processor\t": number, **common, **place, **counts}
        text += "".join(f"{key}: {value}\n" for key, value in rows.items()) + "\n"
    return text


def _module(name: str) -> str:
    return f"{name} {_MODULE_SIZES.get(name, 65536)} 0 - Live 0x0000000000000000\n"


def _mounts(hardware: Hardware) -> str:
    pseudo = (
        "sysfs /sys sysfs rw,nosuid,nodev,noexec,relatime 0 0\n"
        "proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0\n"
        "udev /dev devtmpfs rw,nosuid,relatime 0 0\n"
        f"tmpfs /dev/shm tmpfs rw,nosuid,nodev,size={hardware.memory_gib // 2}g 0 0\n"
        "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime 0 0\n"
    )
    lines = (f"{m.device} {m.path} {m.type} {m.options} 0 0\n" for m in hardware.mounts)
    return pseudo + "".join(lines)


def _limits() -> str:
    rows = (
        ("Max cpu time", "unlimited", "unlimited", "seconds"),
        ("Max file size", "unlimited", "unlimited", "bytes"),
        ("Max stack size", "8388608", "unlimited", "bytes"),
        ("Max core file size", "0", "unlimited", "bytes"),
        ("Max processes", "12383000", "12383000", "processes"),
        ("Max open files", "1048576", "1048576", "files"),
        ("Max locked memory", "unlimited", "unlimited", "bytes"),
        ("Max address space", "unlimited", "unlimited", "bytes"),
        ("Max pending signals", "12383000", "12383000", "signals"),
    )
    head = f"{'Limit':<26}{'Soft Limit':<21}{'Hard Limit':<21}{'Units':<10}\n"
    return head + "".join(f"{a:<26}{b:<21}{c:<21}{d:<10}\n" for a, b, c, d in rows)


_TCP_HEAD = (
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt"
    "   uid  timeout inode\n"
)
_TCP_TAIL = (
    "00000000:00000000 00:00000000 00000000     0        0 {} 1 0000000000000000 100 0 0 10 0\n"
)
_ROUTES = (
    ("Iface", "Destination", "Gateway ", "Flags", "RefCnt", "Use", "Metric", "Mask", "MTU",
     "Window", "IRTT"),
    ("eno1", "00000000", "010012C6", "0003", "0", "0", "100", "00000000", "0", "0", "0"),
    ("eno1", "000012C6", "00000000", "0001", "0", "0", "0", "0000FFFF", "0", "0", "0"),
)  # fmt: skip


_TRIE = """Main:
  +-- 0.0.0.0/0 3 0 5
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.1
           /32 host LOCAL
     +-- 198.18.0.0/16 2 0 2
        |-- 198.18.0.0
           /16 link UNICAST
        |-- {address}
           /32 host LOCAL
"""


def _network(hardware: Hardware) -> Iterator[tuple[str, Entry]]:
    """One Ethernet interface for management, its routes, and an SSH server that listens."""
    listening = f"   0: 00000000:0016 00000000:0000 0A {_TCP_TAIL.format(20000)}"
    loopback = "00000000000000000000000000000001 01 80 10 80       lo\n"
    files = {
        "tcp": _TCP_HEAD + listening, "tcp6": _TCP_HEAD, "if_inet6": loopback,
        "route": "".join("\t".join(row) + "\n" for row in _ROUTES),
        "fib_trie": _TRIE.format(address=address(hardware.name)),
    }  # fmt: skip
    for folder in ("/proc/net", "/proc/1/net"):
        yield from ((f"{folder}/{name}", File(text)) for name, text in files.items())
    for name, value in (("operstate", "up"), ("carrier", "1"), ("mtu", "1500"), ("speed", "25000")):
        yield f"/sys/class/net/eno1/{name}", File(f"{value}\n")


def _model(model: ModelFolder) -> Iterator[tuple[str, Entry]]:
    """A model folder: sparse shards, their index, and stand-ins for all other files."""
    shard = int(model.weights_gib * _GIB / model.shards) // 4096 * 4096
    names = [
        f"model-{number:05}-of-{model.shards:05}.safetensors"
        for number in range(1, model.shards + 1)
    ]
    head = _shard_head(shard)
    for name in names:
        yield f"{model.path}/{name}", Sparse(shard, head)
    total = (shard - len(head)) * model.shards
    weights = {f"model.layers.{number}.weight": name for number, name in enumerate(names)}
    index = {"metadata": {"total_size": total}, "weight_map": weights}
    config = {
        "architectures": [model.architecture], "model_type": model.model_type,
        "torch_dtype": "bfloat16", **model.config,
    }  # fmt: skip
    words = model.config.get("vocab_size")
    generation = {
        "eos_token_id": words - 1 if isinstance(words, int) else 0,  # frontends list none without
        "max_length": model.config.get("max_position_embeddings", 0),
    }
    texts = {
        "config.json": config,
        "generation_config.json": generation,
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizer"},
        "model.safetensors.index.json": index,
    }  # fmt: skip
    for name, value in texts.items():
        yield f"{model.path}/{name}", File(json.dumps(value, indent=2) + "\n")
    for name in model.files:
        yield f"{model.path}/{name}", File(_stand_in(name))


def _shard_head(size: int) -> bytes:
    """Return the head of a safetensors file of one tensor that fills the rest with zeros."""
    for length in range(64, 256, 8):
        tensor = {
            "dtype": "U8",
            "shape": [size - length - 8],
            "data_offsets": [0, size - length - 8],
        }
        text = json.dumps({"w": tensor}, separators=(",", ":")).ljust(length)
        if len(text) == length:
            return length.to_bytes(8, "little") + text.encode()
    raise ValueError(f"no head fits a shard of {size} bytes")


def _stand_in(name: str) -> str:
    if name.endswith(".json"):
        return json.dumps({"stand_in": name}) + "\n"
    comment = "{#" if name.endswith(".jinja") else "#"
    return f"{comment} Stand-in for {name} on a practice host.{' #}' if comment == '{#' else ''}\n"
