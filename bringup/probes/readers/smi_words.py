"""What each form of `nvidia-smi` calls a thing, and the one name that it has here.

The names on the right are attributes of `probes.gpu.Gpu`; several printed counters that add up to
one attribute share its name. Names were read from driver 580.159.04's own help and output, older
spellings from the 470 to 570 manuals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Words: TypeAlias = Mapping[str, str]
"""Words as printed, by attribute name."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What one form told. `trouble` is the tool's complaint, `evidence` the line that shows it.

    `whole`: every GPU that NVML sees is in it. `ordered`: rows stand in index order.
    `empty`: NVML answered, and there is no GPU.
    """

    driver: str = ""
    cuda: str = ""
    attached: int | None = None
    gpus: tuple[Words, ...] = ()
    whole: bool = False
    ordered: bool = False
    empty: bool = False
    trouble: str = ""
    evidence: str = ""


CSV: Mapping[str, str] = {
    "index": "index",
    "name": "name",
    "gpu_name": "name",
    "uuid": "uuid",
    "gpu_uuid": "uuid",
    "pci.bus_id": "bus_id",
    "gpu_bus_id": "bus_id",
    "driver_version": "driver",
    "count": "attached",
    "compute_cap": "compute_capability",
    "memory.total": "memory_mib",
    "memory.used": "memory_used_mib",
    "persistence_mode": "persistence",
    "mig.mode.current": "mig",
    "mig.mode.pending": "mig_pending",
    "ecc.mode.current": "ecc",
    "ecc.errors.uncorrected.volatile.total": "ecc_uncorrected",
    "ecc.errors.uncorrected.aggregate.total": "ecc_uncorrected_aggregate",
    "ecc.errors.corrected.volatile.total": "ecc_corrected",
    "ecc.errors.uncorrected.aggregate.sram.thresholdexceeded": "sram_threshold_exceeded",
    "remapped_rows.pending": "remap_pending",
    "remapped_rows.failure": "remap_failed",
    "remapped_rows.uncorrectable": "remapped_uncorrectable",
    "remapped_rows.dbe": "remapped_uncorrectable",
    "gpu_recovery_action": "recovery_action",
    "power.limit": "power_limit_w",
    "enforced.power.limit": "power_limit_w",
    "gpu.power.current_limit": "power_limit_w",
    "gpu.power.requested_limit": "power_limit_w",
    "temperature.gpu": "temperature_c",
    "temperature.gpu.tlimit": "margin_c",
    "pcie.link.width.current": "pcie_width",
    "pcie.link.width.max": "pcie_width_max",
    "pcie.link.gen.current": "pcie_gen",
    "pcie.link.gen.gpucurrent": "pcie_gen",
    "pcie.link.gen.max": "pcie_gen_max",
    "compute_mode": "compute_mode",
    "vbios_version": "vbios",
    "fabric.state": "fabric_state",
    "fabric.status": "fabric_status",
}

XML: Mapping[str, str] = {
    "product_name": "name",
    "uuid": "uuid",
    "pci/pci_bus_id": "bus_id",
    "fb_memory_usage/total": "memory_mib",
    "fb_memory_usage/used": "memory_used_mib",
    "persistence_mode": "persistence",
    "mig_mode/current_mig": "mig",
    "mig_mode/pending_mig": "mig_pending",
    "ecc_mode/current_ecc": "ecc",
    "ecc_errors/aggregate/sram_threshold_exceeded": "sram_threshold_exceeded",
    "ecc_errors/channel_repair_pending": "repair_pending",
    "ecc_errors/tpc_repair_pending": "repair_pending",
    "ecc_errors/unrepairable_memory": "unrepairable_memory",
    "remapped_rows/remapped_row_pending": "remap_pending",
    "remapped_rows/remapped_row_failure": "remap_failed",
    "remapped_rows/remapped_row_unc": "remapped_uncorrectable",
    "gpu_recovery_action": "recovery_action",
    "gpu_power_readings/current_power_limit": "power_limit_w",
    "gpu_power_readings/power_limit": "power_limit_w",
    "power_readings/power_limit": "power_limit_w",
    "power_readings/enforced_power_limit": "power_limit_w",
    "temperature/gpu_temp": "temperature_c",
    "temperature/gpu_temp_tlimit": "margin_c",
    "temperature/gpu_temp_slow_tlimit_threshold": "margin_slow_c",
    "pci/pci_gpu_link_info/link_widths/current_link_width": "pcie_width",
    "pci/pci_gpu_link_info/link_widths/max_link_width": "pcie_width_max",
    "pci/pci_gpu_link_info/pcie_gen/current_link_gen": "pcie_gen",
    "pci/pci_gpu_link_info/pcie_gen/max_link_gen": "pcie_gen_max",
    "compute_mode": "compute_mode",
    "vbios_version": "vbios",
    "gpu_virtualization_mode/virtualization_mode": "virtualization",
    "vgpu_software_licensed_product/license_status": "licence",
    "fabric/state": "fabric_state",
    "fabric/status": "fabric_status",
}

TEXT: Mapping[str, str] = {
    "product_name": "name",
    "gpu_uuid": "uuid",
    "pci/bus_id": "bus_id",
    "fb_memory_usage/total": "memory_mib",
    "fb_memory_usage/used": "memory_used_mib",
    "persistence_mode": "persistence",
    "mig_mode/current": "mig",
    "mig_mode/pending": "mig_pending",
    "ecc_mode/current": "ecc",
    "aggregate/sram_threshold_exceeded": "sram_threshold_exceeded",
    "channel_repair_pending": "repair_pending",
    "tpc_repair_pending": "repair_pending",
    "unrepairable_memory": "unrepairable_memory",
    "remapped_rows/pending": "remap_pending",
    "remapped_rows/remapping_failure_occurred": "remap_failed",
    "remapped_rows/uncorrectable_error": "remapped_uncorrectable",
    "gpu_recovery_action": "recovery_action",
    "gpu_power_readings/current_power_limit": "power_limit_w",
    "power_readings/power_limit": "power_limit_w",
    "temperature/gpu_current_temp": "temperature_c",
    "temperature/gpu_t_limit_temp": "margin_c",
    "temperature/gpu_t_limit_slowdown_temp": "margin_slow_c",
    "temperature/gpu_slowdown_t_limit_temp": "margin_slow_c",
    "link_width/current": "pcie_width",
    "link_width/max": "pcie_width_max",
    "pcie_generation/current": "pcie_gen",
    "pcie_generation/max": "pcie_gen_max",
    "compute_mode": "compute_mode",
    "vbios_version": "vbios",
    "virtualization_mode": "virtualization",
    "license_status": "licence",
    "fabric/state": "fabric_state",
    "fabric/status": "fabric_status",
}

# One bit a reason in the csv field `clocks_event_reasons.active` (nvml.h, nvmlClocksEventReason…).
SLOWDOWN_BITS: Mapping[int, str] = {
    0x8: "hw_slowdown",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
}
SLOWDOWNS = frozenset(SLOWDOWN_BITS.values())


def total(words: list[str]) -> str:
    """Return the sum of counters as a word; a word that is no number stands for the whole."""
    odd = [word for word in words if not word.isdecimal()]
    counted = [int(word) for word in words if word.isdecimal()]
    return next((w for w in odd if "N/A" not in w), "") or (str(sum(counted)) if counted else "N/A")
