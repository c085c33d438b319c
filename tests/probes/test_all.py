"""Laws of all probes together."""

from __future__ import annotations

from bringup.core.script import compose
from bringup.probes import ALL


def test_each_probe_has_a_name_and_a_type_of_its_own() -> None:
    assert len({probe.name for probe in ALL}) == len(ALL)
    assert len({probe.fact for probe in ALL}) == len(ALL)


def test_the_script_of_all_probes_fits_one_argument() -> None:
    assert len(compose((probe.ask for probe in ALL), nonce="n" * 16).encode()) < 100 * 1024
