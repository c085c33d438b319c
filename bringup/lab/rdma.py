"""RDMA devices as sysfs shows them: ports, counters, verbs nodes, and interfaces on top."""

from __future__ import annotations

from collections.abc import Iterator

from . import pci
from .hardware import Card, Hardware, Port, invented
from .tree import Entry, File, Folder, Link

_STATES = {
    "ACTIVE": ("4: ACTIVE", "5: LinkUp"),
    "INIT": ("2: INIT", "5: LinkUp"),
    "DOWN": ("1: DOWN", "2: Polling"),
}
_NO_LINK = "10 Gb/sec (4X SDR)"
_COUNTERS = (
    "excessive_buffer_overrun_errors", "link_downed", "link_error_recovery",
    "local_link_integrity_errors", "port_rcv_data", "port_rcv_errors", "port_xmit_data",
    "port_xmit_discards", "port_xmit_wait", "symbol_error",
)  # fmt: skip
_HARDWARE_COUNTERS = (
    "local_ack_timeout_err", "out_of_sequence", "packet_seq_err", "rnr_nak_retry_err",
)  # fmt: skip


def entries(hardware: Hardware) -> Iterator[tuple[str, Entry]]:
    """Yield the files of all RDMA devices."""
    for index, port in enumerate(hardware.ports):
        yield from _port(hardware, index, port)
    if hardware.ports and "mlx5_ib" in hardware.modules:
        text = "".join(_ibstat(hardware, *each) for each in enumerate(hardware.ports))
        yield "/usr/lib/lab/ibstat/devices", File(text)


def _port(hardware: Hardware, index: int, port: Port) -> Iterator[tuple[str, Entry]]:
    """One RDMA device: its PCI function, its verbs nodes, its port and its network interface."""
    card = hardware.cards[port.card]
    folder, base = pci.folder(port.pci), f"{pci.folder(port.pci)}/infiniband/{port.name}"
    kind = "020700" if port.link_layer == "InfiniBand" else "020000"
    identity = pci.Identity("15b3", card.device_id, kind)
    yield from pci.entries(hardware.cpu.numbers(port.numa), port.numa, port.pci, identity)
    yield f"{folder}/vpd", File(_vpd(hardware.name, card, port))
    if "mlx5_core" in hardware.modules:
        yield pci.link(f"{folder}/driver", "/sys/bus/pci/drivers/mlx5_core")
        yield "/sys/bus/pci/drivers/mlx5_core", Folder()
    if "mlx5_ib" not in hardware.modules:
        return
    guid = _guid(hardware.name, port)
    values = {
        "fw_ver": card.firmware, "hca_type": card.type, "board_id": card.board_id, "hw_rev": "0",
        "node_guid": guid, "sys_image_guid": _guid(hardware.name, port, board=True),
        "node_type": "1: CA", "node_desc": f"{hardware.name} {port.name}",
        **{f"ports/1/{name}": value for name, value in _port_values(index, card, port).items()},
    }  # fmt: skip
    yield from ((f"{base}/{name}", File(f"{value}\n")) for name, value in values.items())
    yield pci.link(f"{base}/device", folder)
    yield pci.link(f"/sys/class/infiniband/{port.name}", base)
    yield from _nodes(hardware, index, port)
    yield from _interface(hardware, index, port)


def _port_values(index: int, card: Card, port: Port) -> dict[str, str]:
    """Return the files of a port's folder."""
    state, physical = _STATES[port.state]
    is_managed = port.state == "ACTIVE" and port.link_layer == "InfiniBand"
    plain = {
        "state": state, "phys_state": physical, "link_layer": port.link_layer,
        "rate": _NO_LINK if port.state == "DOWN" else card.rate, "cap_mask": "0xa651e848",
        "lid": f"0x{index + 1 if is_managed else 0xFFFF:x}", "lid_mask_count": "0",
        "sm_lid": "0x1" if is_managed else "0x0", "gids/0": _gid(index), "pkeys/0": "0xffff",
    }  # fmt: skip
    if port.link_layer == "Ethernet":
        types = {"gid_attrs/types/0": "IB/RoCE v1", "gid_attrs/types/1": "RoCE v2"}
        plain |= {"lid": "0x0", "gids/1": _gid(index), **types}
    counters = {f"counters/{name}": "0" for name in _COUNTERS}
    return plain | counters | {f"hw_counters/{name}": "0" for name in _HARDWARE_COUNTERS}


def _guid(host: str, port: Port, *, board: bool = False) -> str:
    """Return a GUID. The functions of one card share its system image GUID."""
    what = port.pci.rpartition(".")[0] if board else port.pci
    text = invented(host, "guid", what)[:16]
    return ":".join(text[start : start + 4] for start in range(0, 16, 4))


def _gid(index: int) -> str:
    return f"fe80:0000:0000:0000:0000:0000:0000:{index + 1:04x}"


def _vpd(host: str, card: Card, port: Port) -> bytes:
    """Return vital product data; the switches' management functions carry ``SW_MNG`` there.

    Layout: PCI local bus specification, appendix I; the mark: siderolabs/extensions#893.
    """
    mark = "SW_MNG " if port.purpose == "bridge" else ""
    name = f"NVIDIA {card.product} {mark}adapter card".encode()
    serial = invented(host, "card", port.pci.rpartition(".")[0])[:12].upper().encode()
    fields = b"".join(
        key + bytes([len(value)]) + value
        for key, value in (
            (b"PN", b"900-00000-0000-000"),
            (b"SN", serial),
            (b"V0", b"PCIeGen6 x16"),
        )
    )
    checksum = b"RV\x01\x00"
    return b"\x82" + _sized(name) + b"\x90" + _sized(fields + checksum) + b"\x78"


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(2, "little") + data


def _nodes(hardware: Hardware, index: int, port: Port) -> Iterator[tuple[str, Entry]]:
    """The device nodes of verbs and management datagrams, where their modules are loaded."""
    folder = pci.folder(port.pci)
    kinds = [("infiniband_verbs", "uverbs", "ib_uverbs")]
    if port.link_layer == "InfiniBand":
        kinds += [("infiniband_mad", "umad", "ib_umad"), ("infiniband_mad", "issm", "ib_umad")]
    for kind, node, module in kinds:
        if module in hardware.modules:
            base = f"{folder}/{kind}/{node}{index}"
            yield f"{base}/ibdev", File(f"{port.name}\n")
            yield pci.link(f"/sys/class/{kind}/{node}{index}", base)
            yield f"/dev/infiniband/{node}{index}", Link("/dev/null")
    if "rdma_ucm" in hardware.modules:
        yield "/dev/infiniband/rdma_cm", Link("/dev/null")


def _interface(hardware: Hardware, index: int, port: Port) -> Iterator[tuple[str, Entry]]:
    """The network interface on top of a port; the switches' functions have none."""
    if port.purpose == "bridge":
        return
    is_ib, is_up = port.link_layer == "InfiniBand", port.state == "ACTIVE"
    name = f"ibp{index}s0" if is_ib else f"ens{index}np0"
    base = f"{pci.folder(port.pci)}/net/{name}"
    digits = invented(hardware.name, name)
    values = {
        "operstate": "up" if is_up else "down", "carrier": str(int(is_up)), "carrier_changes": "2",
        "mtu": "4092" if is_ib else "9000", "type": "32" if is_ib else "1", "dev_port": "0",
        "speed": _megabits(hardware.cards[port.card]) if is_up else "-1",
        "address": ":".join(("02", *(digits[start : start + 2] for start in range(0, 10, 2)))),
    }  # fmt: skip
    yield from ((f"{base}/{key}", File(f"{value}\n")) for key, value in values.items())
    yield pci.link(f"{base}/device", pci.folder(port.pci))
    yield pci.link(f"/sys/class/net/{name}", base)


def _megabits(card: Card) -> str:
    return str(int(card.rate.split()[0]) * 1000)


_STATE_WORDS = {"ACTIVE": "Active", "INIT": "Initializing", "DOWN": "Down"}


def _ibstat(hardware: Hardware, index: int, port: Port) -> str:
    """Return what `ibstat` prints of a device."""
    card = hardware.cards[port.card]
    values = _port_values(index, card, port)
    guid = f"0x{_guid(hardware.name, port).replace(':', '')}"
    board = f"0x{_guid(hardware.name, port, board=True).replace(':', '')}"
    head = (
        ("CA type", card.type), ("Number of ports", "1"), ("Firmware version", card.firmware),
        ("Hardware version", "0"), ("Node GUID", guid), ("System image GUID", board),
    )  # fmt: skip
    rows = (
        ("State", _STATE_WORDS[port.state]),
        ("Physical state", values["phys_state"].partition(": ")[2]),
        ("Rate", values["rate"].split()[0]), ("Base lid", str(int(values["lid"], 16))),
        ("LMC", "0"), ("SM lid", str(int(values["sm_lid"], 16))),
        ("Capability mask", values["cap_mask"]), ("Port GUID", guid),
        ("Link layer", port.link_layer),
    )  # fmt: skip
    lines = [f"CA '{port.name}'", *(f"\t{key}: {value}" for key, value in head), "\tPort 1:"]
    return "\n".join((*lines, *(f"\t\t{key}: {value}" for key, value in rows))) + "\n"
