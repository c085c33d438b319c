"""What the forms of nvidia-smi tell about GPUs."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from bringup.core.reading import Known, Unknown
from bringup.core.script import Section
from bringup.probes import gpu
from bringup.probes.gpu import Gpu, Gpus
from bringup.probes.readers import smi, topo

OUTPUTS = Path(__file__).parent / "outputs"
H200 = (OUTPUTS / "h200-nvidia-smi-q-x.txt").read_text()


def read(text: str) -> Gpus:
    reading = gpu.parse(Section("gpus", 0, text))
    assert isinstance(reading, Known), reading
    return reading.value


def only(text: str) -> Gpu:
    (one,) = read(text).gpus
    return one


def test_xml_tells_versions_and_memory() -> None:
    gpus = read(H200)
    assert (gpus.driver, gpus.cuda, gpus.count) == ("580.159.04", "13.0", 1)
    assert gpus.gpus[0].memory_mib == 143771


def test_compute_capability_comes_from_the_query_after_the_xml() -> None:
    query = "index, pci.bus_id, compute_cap\n0, 00000000:00:06.0, 9.0\n"
    assert only(H200 + "\n" + query).compute_capability == "9.0"


def test_a_word_that_is_not_available_is_neither_zero_nor_an_error() -> None:
    one = only("index, name, memory.total [MiB]\n0, NVIDIA GB10, [N/A]\n")
    assert one.memory_mib is None
    assert "memory_mib" in one.not_supported
    assert not one.unreadable


def test_a_word_in_place_of_a_number_is_kept_as_unreadable() -> None:
    one = only("index, name, temperature.gpu\n5, NVIDIA H200, [GPU requires reset]\n")
    assert one.unreadable == {"temperature_c": "[GPU requires reset]"}


@pytest.mark.parametrize("form", ["h200-nvidia-smi", "h200-nvidia-smi-L", "h200-nvidia-smi-csv"])
def test_every_form_names_the_gpu(form: str) -> None:
    assert only((OUTPUTS / f"{form}.txt").read_text()).name == "NVIDIA H200"


def test_xml_that_was_cut_off_gives_no_count() -> None:
    reading = gpu.join(smi.read_all(H200[: len(H200) // 2]))
    assert not isinstance(reading, Known) or reading.value.count is None


def test_a_missing_tool_leaves_the_gpus_unknown() -> None:
    assert isinstance(gpu.parse(Section("gpus", 127, "nvidia-smi: not found")), Unknown)


def test_no_devices_found_is_an_answer_with_no_gpu() -> None:
    reading = gpu.join(smi.read_all("No devices were found\n"))
    assert isinstance(reading, Known)
    assert reading.value.count == 0


X2 = "h200x2-nvidia-smi"


def test_text_and_xml_of_one_host_tell_the_same() -> None:
    """Only the text lists no processes, and the XML names no compute capability."""
    xml = gpu.join(smi.read_all((OUTPUTS / f"{X2}-q-x.txt").read_text()))
    text = gpu.join(smi.read_all((OUTPUTS / f"{X2}-q.txt").read_text()))
    assert isinstance(xml, Known)
    assert isinstance(text, Known)
    assert (xml.value.driver, xml.value.cuda) == (text.value.driver, text.value.cuda)
    volatile = {"processes", "temperature_c", "margin_c", "memory_used_mib"}
    for one, other in zip(xml.value.gpus, text.value.gpus, strict=True):
        assert _steady(one, volatile) == _steady(other, volatile)


def _steady(one: Gpu, volatile: set[str]) -> dict[str, object]:
    fields = dataclasses.asdict(one)
    return {name: value for name, value in fields.items() if name not in volatile}


def test_links_and_peers_of_two_gpus() -> None:
    matrix = topo.read_matrix((OUTPUTS / f"{X2}-topo-m.txt").read_text())
    peers = topo.read_matrix((OUTPUTS / f"{X2}-topo-p2p-r.txt").read_text())
    links = topo.read_links((OUTPUTS / f"{X2}-nvlink-s.txt").read_text())
    assert matrix.gpus == (("X", "NV18"), ("NV18", "X"))
    assert peers.gpus == (("X", "OK"), ("OK", "X"))
    assert {index: set(speeds) for index, speeds in links.items()} == {0: {26.562}, 1: {26.562}}
