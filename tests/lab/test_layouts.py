"""What the practice hosts' tools print has the layout of the real tools."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from .layouts import DATA, HERE, build, indented, masked, run, shape, skeleton

pytestmark = pytest.mark.xdist_group("lab-layouts")


@pytest.fixture(scope="module")
def h200(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("h200"), "h200-01", HERE / "hosts")


@pytest.fixture(scope="module")
def b300(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("b300"), "b300-04")


@pytest.fixture(scope="module")
def b200(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("b200"), "b200-01")


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("broken"), "b300-13")


FIELDS = (
    "index,name,uuid,pci.bus_id,driver_version,vbios_version,memory.total,memory.used,"
    "mig.mode.current,ecc.mode.current,ecc.errors.uncorrected.volatile.total,persistence_mode,"
    "compute_mode,compute_cap,power.limit,clocks.max.sm,temperature.gpu,pstate,fabric.state,"
    "fabric.status,remapped_rows.pending,remapped_rows.failure,addressing_mode"
)


@pytest.mark.parametrize(
    ("words", "captured"),
    [
        ((), "nvidia-smi.out"),
        (("-L",), "nvidia-smi-L.out"),
        (("topo", "-m"), "nvidia-smi-topo-m.out"),
        (("topo", "-p2p", "r"), "nvidia-smi-topo-p2p.out"),
        ((f"--query-gpu={FIELDS}", "--format=csv"), "nvidia-smi-csv.out"),
        (("--query-gpu=does.not.exist", "--format=csv"), "nvidia-smi-csv-unknown.out"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_described_h200_prints_what_was_captured(
    h200: Path, words: tuple[str, ...], captured: str
) -> None:
    done = run(h200, "nvidia-smi", *words)
    assert masked(done.stdout) == masked((DATA / "h200" / captured).read_text())
    assert done.returncode == (2 if "unknown" in captured else 0)


def test_the_xml_report_has_every_element_of_the_captured_one(h200: Path) -> None:
    said = run(h200, "nvidia-smi", "-q", "-x").stdout
    assert skeleton(said) == skeleton((DATA / "h200/nvidia-smi-q-x.out").read_text())


def test_nvcc_prints_what_was_captured(h200: Path) -> None:
    said = run(h200, "../local/cuda/bin/nvcc", "--version").stdout
    assert said == (DATA / "h200/nvcc.out").read_text()


def test_the_table_of_two_b200_keeps_its_columns(b200: Path) -> None:
    said = run(b200, "nvidia-smi").stdout.splitlines()
    wanted = (DATA / "b200/nvidia-smi.out").read_text().splitlines()
    digits = re.compile(r"\d")
    assert [digits.sub("0", line) for line in said[1:]] == [
        digits.sub("0", line) for line in wanted[1:]
    ]


def test_driver_610_renames_its_versions(tmp_path: Path) -> None:
    (tmp_path / "b200-61.yml").write_text(
        (HERE.parents[1] / "bringup/lab/hosts/b200-01.yml").read_text()
        .replace("version: 580.95.05, cuda: \"13.0\"", "version: 610.43.02, cuda: \"13.3\"")
    )  # fmt: skip
    said = run(build(tmp_path / "root", "b200-61", tmp_path), "nvidia-smi").stdout
    wanted = (DATA / "b200/nvidia-smi-610.out").read_text()
    assert said.splitlines()[2] == wanted.splitlines()[2]


def test_the_matrix_with_ports_keeps_tabs_and_legends(b300: Path) -> None:
    said = run(b300, "nvidia-smi", "topo", "-m").stdout.splitlines()
    wanted = (DATA / "b200/nvidia-smi-topo-m.out").read_text().splitlines()
    row = {line.partition("\t")[0]: line for line in wanted}
    gpu, port = said[1], said[9]
    assert gpu.count("\t") == row["GPU0"].count("\t") - 2  # two ports fewer
    assert re.sub(r".*\t(?=\d+-)", "", gpu).count("\t") == 3
    assert port.endswith("\t\t\t\t")
    assert row["NIC0"].endswith("\t\t\t\t")
    legends = (said[said.index("Legend:") :], wanted[wanted.index("Legend:") :])
    assert legends[0][:13] == legends[1][:13]
    assert said[0].startswith("\t\x1b[4mGPU0\t")
    assert said[0].endswith("GPU NUMA ID\x1b[0m")


def test_one_port_sits_nearest_to_each_gpu(b300: Path) -> None:
    rows = run(b300, "nvidia-smi", "topo", "-m").stdout.splitlines()[1:9]
    near = [row.split("\t")[9:23].index("PXB") for row in rows]
    assert near == [4, 7, 8, 9, 10, 11, 12, 13]


def test_a_part_of_the_text_report_keeps_its_labels(broken: Path) -> None:
    said = run(broken, "nvidia-smi", "-q", "-i", "5", "-d", "ROW_REMAPPER").stdout
    wanted = (DATA / "b200/nvidia-smi-q-d-row-remapper.out").read_text()
    assert indented(re.sub(r"GPU 0.*", "GPU", said)) == indented(re.sub(r"GPU 0.*", "GPU", wanted))
    assert "        Pending                           : Yes\n" in said


def test_ibstat_keeps_its_tabs_and_labels(b300: Path) -> None:
    said = run(b300, "ibstat").stdout.splitlines()[:16]
    wanted = (DATA / "b200/ibstat.out").read_text().splitlines()[:16]
    assert indented("\n".join(said)) == indented("\n".join(wanted))


def test_a_failed_unit_keeps_its_layout(broken: Path) -> None:
    done = run(broken, "systemctl", "status", "nvidia-fabricmanager", "--no-pager")
    wanted = (DATA / "b200/systemctl-status-fabricmanager.out").read_text()
    assert done.returncode == 3
    assert shape(done.stdout)[2] == shape(wanted)[2]
    assert "don't match with driver version 580.126.09" in done.stdout


def test_docker_info_keeps_its_layout(b300: Path) -> None:
    said = indented(run(b300, "docker", "info").stdout)
    wanted = indented((DATA / "b200/docker-info.out").read_text())
    storage = ("  driver-type",)
    assert [line for line in wanted if line not in said and line not in storage] == []


def test_docker_tells_single_values_by_template(b300: Path) -> None:
    said = run(b300, "docker", "info", "--format", "{{.ServerVersion}} {{json .CgroupDriver}}")
    assert said.stdout == '28.5.1 "systemd"\n'


def test_docker_refuses_a_template_of_unknown_values(b300: Path) -> None:
    assert run(b300, "docker", "info", "--format", "{{.NoSuchThing}}").returncode == 64


def test_an_image_is_found_by_its_reference(b300: Path) -> None:
    form = ("--format", "{{.Id}}")
    done = run(b300, "docker", "image", "inspect", "dynamo-sglang-k3:1.3.0.post1", *form)
    assert re.fullmatch(r"sha256:[0-9a-f]{64}\n", done.stdout)


def test_an_image_that_is_not_there_is_an_error(b300: Path) -> None:
    done = run(b300, "docker", "image", "inspect", "no/such:image")
    assert (done.returncode, done.stdout) == (1, "[]\n")
    assert "No such image" in done.stderr


@pytest.mark.parametrize("words", [("restart", "docker"), ("daemon-reload",)])
def test_services_of_a_practice_host_do_not_change(b300: Path, words: tuple[str, ...]) -> None:
    assert run(b300, "systemctl", *words).returncode == 1


def test_a_unit_that_does_not_exist_is_not_found(b300: Path) -> None:
    said = run(b300, "systemctl", "show", "nothing", "-p", "LoadState,ActiveState").stdout
    assert said == "LoadState=not-found\nActiveState=inactive\n"


def test_cuda_does_not_start_before_the_fabric(broken: Path) -> None:
    ask = "import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))"
    assert run(broken, "python3", "-c", ask).stdout == "802\n"


def test_disks_are_the_described_ones(b300: Path) -> None:
    done = run(b300, "df", "-kP", str(b300 / "raid/models"))
    assert done.stdout.splitlines()[1].split()[0] == "/dev/md1"


def test_tools_work_by_path_search_as_well(b300: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", "cd / && nvidia-smi -L"], check=True, capture_output=True, text=True,
        env={"PATH": f"{b300}/usr/bin:/usr/bin:/bin"}, timeout=300,
    )  # fmt: skip
    assert done.stdout.count("\n") == 8
