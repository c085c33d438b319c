"""Leave out of the compute devices what differs from most of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .hca import Purpose, Sighting

Verdict = tuple[Purpose, str]
"""What a device is for, and the evidence."""


def without_strangers(
    seen: Sequence[Sighting], verdicts: dict[str, Verdict], beside: Collection[str]
) -> dict[str, Verdict]:
    """Leave out what differs from most compute devices: in link layer, in maker, or as a bond.

    What sits `beside` a GPU is compute whatever it looks like.
    """
    compute = [d for d in seen if verdicts[d.name][0] is Purpose.COMPUTE]
    rails = [d for d in compute if d.link_layer == "InfiniBand" or d.lid]
    others = [d for d in compute if d not in rails and d.name not in beside]
    whole = [d for d in compute if "bond" not in d.name]
    strangers = {
        d.name: f"a bond, unlike {whole[0].name}" for d in others if whole and d not in whole
    }
    if rails and len(rails) >= len(others):
        own = _maker(rails[0])
        foreign = (d for d in others if _maker(d) not in ("", own))
        strangers |= {d.name: f"another maker's card, unlike {rails[0].name}" for d in foreign}
    if len(rails) > len(others):
        ethernet = (d for d in others if d.link_layer == "Ethernet")
        strangers |= {d.name: f"Ethernet, unlike {rails[0].name}" for d in ethernet}
    return verdicts | {name: (Purpose.STORAGE, why) for name, why in strangers.items()}


MAKERS = ("mlx5", "mlx4", "bnxt_re", "irdma", "ionic", "erdma", "hns")
"""Drivers by what they call their devices; names by bus address (ibp24s0) tell no maker."""


def _maker(device: Sighting) -> str:
    return next((maker for maker in MAKERS if device.name.startswith(maker)), "")


def without_slow(seen: Sequence[Sighting], verdicts: dict[str, Verdict]) -> dict[str, Verdict]:
    """An active device at less than half of the fastest compute device's rate is not one."""
    rates = {
        d.name: d.rate_gb_s
        for d in seen
        if verdicts[d.name][0] is Purpose.COMPUTE and d.state == "ACTIVE" and d.rate_gb_s
    }
    fastest = max(rates, key=lambda name: rates[name], default="")
    slow = {name: rate for name, rate in rates.items() if rate < rates[fastest] / 2}
    layers = {d.name: d.link_layer for d in seen}
    return verdicts | {
        name: (Purpose.STORAGE, f"{rate:g} Gb/s, {fastest} has {rates[fastest]:g}")
        for name, rate in slow.items()
        if layers[name] != layers[fastest]
    }
