"""The container engine, its containers and images, by what docker and podman print."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bringup.core.facts import Probe
from bringup.core.reading import Absent, Known, Reading, Unknown
from bringup.core.script import Section
from bringup.probes import cdi, container, containers
from bringup.probes.cdi import CdiSpec, CdiSpecs
from bringup.probes.container import ContainerEngine, DaemonConfig
from bringup.probes.containers import Container, Containers, container_of
from bringup.probes.inside import Inside, image_look
from bringup.probes.stored_image import StoredImage, image_probe

from .asking import ask
from .dockerd import daemon, docker

ALL = (
    *cdi.PROBES, *container.PROBES, *containers.PROBES, image_probe("x"),
    containers.inside_probe("x")
)  # fmt: skip


def section(text: str, rc: int = 0) -> Section:
    return Section("x", rc, text)


@pytest.mark.parametrize("probe", ALL, ids=lambda probe: probe.name)
@given(text=st.text(st.characters(codec="utf-8") | st.sampled_from('\t\n\0:{}[]"')))
def test_garbage_is_unknown(probe: Probe[object], text: str) -> None:
    assert isinstance(probe.parse(section(text)), Unknown)


JSON = {
    "ServerVersion": "29.2.1",
    "Runtimes": {"runc": {}, "nvidia": {"path": "nvidia-container-runtime"}},
    "DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}, {"Source": "x", "ID": "y"}],
    "DockerRootDir": "/var/lib/docker",
    "CgroupDriver": "systemd",
    "CgroupVersion": "2",
    "LoggingDriver": "json-file",
}
TEXT = """\
Server:
 Server Version: 29.2.1
 Logging Driver: json-file
 Cgroup Driver: systemd
 Cgroup Version: 2
 CDI spec directories:
  /etc/cdi
 Discovered Devices:
  cdi: nvidia.com/gpu=0
 Runtimes: nvidia runc
 Docker Root Dir: /var/lib/docker
"""
ENGINE = ContainerEngine(
    "docker", "29.2.1", ("nvidia", "runc"), ("nvidia.com/gpu=0",), "/var/lib/docker", "systemd",
    "2", "json-file",
)  # fmt: skip


@pytest.mark.parametrize("info", [json.dumps(JSON), TEXT], ids=["json", "text"])
def test_docker_info_is_read_in_both_forms(info: str) -> None:
    found = container.parse(section(f"engine docker\n{info}"))
    assert isinstance(found, Known)
    assert found.value == ENGINE


def test_podman_is_an_engine_too() -> None:
    info = {
        "host": {"cgroupManager": "systemd", "cgroupVersion": "v2", "ociRuntime": {"name": "crun"}},
        "store": {"graphRoot": "/var/lib/containers/storage"},
        "version": {"Version": "4.9.3"},
    }
    found = container.parse(section(f"engine podman\n{json.dumps(info)}"))
    assert isinstance(found, Known)
    assert (found.value.name, found.value.version, found.value.cgroup_version) == (
        "podman", "4.9.3", "2",
    )  # fmt: skip


DENIED = (
    "permission denied while trying to connect to the Docker daemon socket at "
    "unix:///var/run/docker.sock"
)


@pytest.mark.parametrize("probe", [container.PROBE, *ALL[-3:]], ids=lambda probe: probe.name)
def test_a_login_without_access_is_not_an_absent_engine(probe: Probe[object]) -> None:
    found = probe.parse(section(f"engine docker\n{DENIED}\n", 1))
    assert isinstance(found, Unknown)
    assert found.why == "permission denied"


def test_a_daemon_that_is_down_is_unknown_with_its_words() -> None:
    said = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?"
    text = f'engine docker\n{said}\n{{"ServerVersion":"","Runtimes":null}}\n'
    found = container.parse(section(text, 1))
    assert isinstance(found, Unknown)
    assert found.why == said


CDI = """\
spec\t/run/cdi/nvidia.yaml
kind\tkind: nvidia.com/gpu
library\tlibcuda.so.580.95.05
library\tlibnvidia-ml.so.580.95.05
device\t  name: "0:1"
device\t  name: all
spec\t/etc/cdi/other.yaml
kind\tkind: vendor.com/net
end\tof specifications
"""


def test_a_cdi_file_tells_the_driver_that_it_was_made_for() -> None:
    found = cdi.parse_cdi(section(CDI))
    assert isinstance(found, Known)
    assert found.value == CdiSpecs((CdiSpec("/run/cdi/nvidia.yaml", "580.95.05", ("0:1", "all")),))


def test_a_cdi_folder_that_nobody_may_read_is_unknown() -> None:
    text = "unreadable\t/etc/cdi\nend\tof specifications\n"
    assert isinstance(cdi.parse_cdi(section(text)), Unknown)


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ('{"log-opts": {"max-size": "100m"}}', DaemonConfig("", {"max-size": "100m"})),
        ('{"log-driver": "local"}', DaemonConfig("local")),
        ('{"log-driver": ', None),
    ],
)
def test_daemon_json_is_read_or_unknown(text: str, reading: DaemonConfig | None) -> None:
    found = container.parse_daemon(section(text))
    assert (found.value if isinstance(found, Known) else None) == reading


@pytest.mark.parametrize(
    ("settings", "request_"),
    [
        ({"DeviceRequests": [{"Driver": "", "Capabilities": [["gpu"]]}], "Devices": []}, "gpus"),
        ({"DeviceRequests": [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=all"]}]}, "cdi"),
        ({"Devices": [{"PathOnHost": "/dev/nvidia0"}], "DeviceRequests": None}, "devices"),
        ({"Runtime": "nvidia"}, "runtime"),
        ({"DeviceRequests": "garbage", "Devices": 7, "Ulimits": {}}, "none"),
    ],
)
def test_how_gpus_were_asked_for_is_told_apart(settings: dict[str, object], request_: str) -> None:
    assert container_of("/serve", settings).gpu_request == request_


def test_nvml_that_fails_inside_means_no_gpu_inside() -> None:
    found = containers.gpus_listed(255, "Failed to initialize NVML: Unknown Error")
    assert found == Known(0, "Failed to initialize NVML: Unknown Error")
    assert isinstance(containers.gpus_listed(127, "sh: nvidia-smi: not found"), Unknown)


@pytest.mark.parametrize(
    ("row", "mib"),
    [
        ("shm              64M     0   64M   0% /dev/shm", 64),
        ("shm 65536 0 65536 0% /dev/shm", 64),
        ("tmpfs 1007G 0 1007G 0% /dev/shm", 1031168),
        ("df: not found", None),
    ],
)
def test_shm_is_read_with_and_without_units(row: str, mib: int | None) -> None:
    assert containers.shm_mib(row) == mib


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("255\tNo IB devices found", Known((), "No IB devices found")),
        ("0\t2 HCAs found: mlx5_4 mlx5_7", Known(("mlx5_4", "mlx5_7"), "")),
        ("127\tsh: ibv_devinfo: not found", None),
    ],
)
def test_verbs_inside_are_listed_or_surely_none(
    text: str, reading: Reading[tuple[str, ...]]
) -> None:
    found = containers.devices_listed(text)
    values = [r.value if isinstance(r, Known) else None for r in (found, reading)]
    assert values[0] == values[1]


@pytest.fixture(scope="module")
def socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with daemon(tmp_path_factory.mktemp("d")) as host:
        yield host


@pytest.mark.root
@pytest.mark.slow
def test_a_real_docker_is_read(socket: str) -> None:
    label = "bringup.config=sha256:abc"
    docker(
        socket, "run", "-d", "--name", "serve", "--network", "host", "--label", label, "--label",
        "secret=x", "--shm-size", "1g", "--device", "/dev/null", "tiny:1", "sleep", "600",
    )  # fmt: skip
    docker(socket, "create", "--name", "old", "-p", "8000:80", "tiny:1", "true")
    image, inside = image_probe("tiny:1"), containers.inside_probe("serve")
    env = {"DOCKER_HOST": socket}
    facts = ask(container.PROBE, *containers.PROBES, image, inside, env=env)

    engine = facts[ContainerEngine]
    assert isinstance(engine, Known)
    assert "runc" in engine.value.runtimes
    listed = facts[Containers]
    assert isinstance(listed, Known)
    old, serve = listed.value.containers
    assert (old.name, old.state, old.ports) == ("old", "created", (8000,))
    assert (serve.name, serve.state, serve.network) == ("serve", "running", "host")
    assert (serve.labels, serve.devices) == ({"bringup.config": "sha256:abc"}, ("/dev/null",))
    stored = facts[StoredImage]
    assert isinstance(stored, Known)
    assert stored.value.id == serve.image_id
    seen = facts[Inside]
    assert isinstance(seen, Known)
    assert (seen.value.container, seen.value.shm_mib) == ("serve", 1024)
    assert isinstance(seen.value.gpus, Unknown)
    assert isinstance(seen.value.rdma_nodes, Absent)


@pytest.mark.root
@pytest.mark.slow
def test_what_a_real_docker_lacks_is_absent(socket: str) -> None:
    image, inside = image_probe("no'such:1"), containers.inside_probe("nobody")
    facts = ask(image, inside, env={"DOCKER_HOST": socket})
    assert isinstance(facts[StoredImage], Absent)
    assert isinstance(facts[Inside], Absent)


@pytest.mark.root
@pytest.mark.slow
def test_an_image_is_looked_into_and_nothing_is_left(socket: str) -> None:
    env = {"DOCKER_HOST": socket}
    facts = ask(image_look("tiny:1"), env=env)
    seen = facts[Inside]
    assert isinstance(seen, Known)
    assert seen.value.image == "tiny:1"
    assert isinstance(seen.value.nvcc, Absent)
    assert seen.value.tools["gcc"] is False
    assert seen.value.missing_packages is None, "no Python inside tells of no package"
    listed = ask(*containers.PROBES, env=env)[Containers]
    assert isinstance(listed, Known)
    assert [c.name for c in listed.value.containers if c.image == "tiny:1"] in (
        [],
        ["old", "serve"],
    )
    assert isinstance(ask(image_look("nosuch:1"), env=env)[Inside], Absent)


def test_a_daemon_without_a_socket_is_unknown(tmp_path: Path) -> None:
    facts = ask(container.PROBE, env={"DOCKER_HOST": f"unix://{tmp_path}/none"})
    assert not isinstance(facts[ContainerEngine], Known)
    assert Container("x").is_running is False
