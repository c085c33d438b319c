"""The bundle over real OpenSSH and into a real container: what a fleet has, on this machine."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import cast

import paramiko
import pytest

from bringup.bundle.doctor import causes
from bringup.bundle.frontend_process import container_log
from bringup.bundle.reports import PushOutcome
from bringup.core.reading import Absent, Known
from bringup.edge.etcd import Etcd
from bringup.edge.site import site_of
from bringup.edge.ssh import SshFleet, SshOptions
from bringup.flow.bundle import listed_there, read_here, read_there
from bringup.flow.bundle_doctor import Frontend, examine, gather, look_there, read_log
from bringup.flow.bundle_push import PushTarget, push
from bringup.readiness.cards import read_discovery
from tests.dynamo.etcd import etcd_server
from tests.dynamo.model import toy_model
from tests.dynamo.processes import until
from tests.fleet.sshd import Sshd
from tests.image.dockerd import Dockerd, dockerd

from .folders import bundle_of
from .here import HereHost
from .test_make import odd_tree

pytestmark = pytest.mark.slow


@pytest.fixture
def fleet(sshd: Sshd) -> Iterator[SshFleet]:
    hosts = {"b300-04": sshd.host("b300-04")}
    options = SshOptions(known_hosts=sshd.known_hosts, use_ssh_config=False)
    with SshFleet(hosts, options) as one:
        yield one


def test_folder_with_odd_names_is_read_over_ssh_as_it_is_here(
    fleet: SshFleet, tmp_path: Path
) -> None:
    folder = odd_tree(tmp_path / "model")
    remote = fleet.remote("b300-04")
    source = read_there(site_of(remote.host, remote), str(folder))
    assert source.files == read_here(folder).files


def test_push_over_ssh_arrives_whole_and_the_next_one_is_a_single_trip(
    fleet: SshFleet, tmp_path: Path
) -> None:
    bundle = bundle_of(odd_tree(tmp_path / "model"), tmp_path / "bundle.tgz")
    remote = fleet.remote("b300-04")
    target = PushTarget(remote.host, str(tmp_path / "raid/K3"), remote)
    (first,) = push(bundle, [target])
    before = fleet.traffic()["b300-04"]
    (again,) = push(bundle, [target])
    after = fleet.traffic()["b300-04"]
    assert (first.outcome, again.outcome) == (PushOutcome.CHANGED, PushOutcome.SAME)
    assert read_here(tmp_path / "raid/K3").files == bundle.files
    assert after.commands - before.commands == 1
    assert after.connections == before.connections
    assert after.sent - before.sent < 16_000


def test_etcd_is_asked_through_a_channel_of_an_ssh_connection(sshd: Sshd, tmp_path: Path) -> None:
    client = paramiko.SSHClient()
    client.load_host_keys(str(sshd.known_hosts))
    client.connect(
        sshd.address, sshd.port, sshd.user, key_filename=str(sshd.key), look_for_keys=False,
        allow_agent=False,
    )  # fmt: skip
    transport = client.get_transport()
    assert transport is not None

    def through(host: str, port: int, seconds: float) -> socket.socket:
        channel = transport.open_channel("direct-tcpip", (host, port), ("127.0.0.1", 0))
        channel.settimeout(seconds)
        return cast("socket.socket", channel)

    with etcd_server(tmp_path) as server:
        etcd = Etcd((server.url,), opener=through, seconds=120)
        etcd.put("v1/mdc/large", b"x" * 300_000)
        assert [(entry.key, len(entry.value)) for entry in etcd.range("v1/mdc/")] == [
            ("v1/mdc/large", 300_000)
        ]
    client.close()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dockerd]:
    """A docker engine with one image: busybox and nothing else."""
    tree = tmp_path_factory.mktemp("image")
    (tree / "bin").mkdir()
    shutil.copy("/bin/busybox", tree / "bin/busybox")
    packed = shutil.make_archive(str(tree), "tar", tree)
    with dockerd(Path(f"/tmp/bringup-bundle-{os.getpid()}")) as running:  # a socket's path is short
        running.docker("import", "--change", "ENV PATH=/bin", packed, "frontend")
        yield running


FOLDER = "/raid/models/Kimi-K3"


@pytest.mark.root
def test_folders_and_log_are_those_inside_the_frontend_s_container(
    engine: Dockerd, tmp_path: Path
) -> None:
    """The host has the files, the container does not: the K3 report's wall, with Docker."""
    model = toy_model(tmp_path / "model")
    script = f"busybox --install -s /bin; echo '{LOG}'; exec sleep 600"
    run = ("run", "--detach", "--network", "none", "--init")
    command = ("frontend", "busybox", "sh", "-c", script)
    mount = ("--volume", f"{model}:{FOLDER}:ro")
    bare = engine.docker(*run, *command)
    mounted = engine.docker(*run, *mount, *command)
    here = HereHost().site
    inside = here.container(bare, engine=engine.words)
    for name in (bare, mounted):
        until(partial(_has_spoken, engine, name), "the container has spoken")
    found = listed_there(here.container(mounted, engine=engine.words), FOLDER)
    evidence = gather(
        "toy",
        Frontend("http://127.0.0.1:9"),
        announced=lambda: read_discovery([("v1/mdc/a", CARD)]),
        look=look_there(inside),
        log=lambda: read_log(here, container_log(bare, engine=engine.words)),
    )
    engine.docker("rm", "--force", bare, mounted)
    assert isinstance(found, Known)
    assert {one.name for one in found.value.candidates} == {path.name for path in model.iterdir()}
    assert evidence.folders == {FOLDER: Absent(f"no folder {FOLDER}")}
    assert "log: hub::from_hf" in str(causes(examine(evidence)))


def _has_spoken(engine: Dockerd, name: str) -> bool:
    return "Error adding" in engine.docker("logs", name)


LOG = (
    'ERROR watcher: Error adding model from discovery model_name="toy" namespace="dynamo" '
    f'error="hub::from_hf({FOLDER}): Failed to fetch model"'
)

CARD = json.dumps(
    {
        "namespace": "dynamo",
        "component": "backend",
        "endpoint": "generate",
        "instance_id": 7,
        "card_json": {
            "display_name": "toy",
            "source_path": FOLDER,
            "tokenizer": {
                "hf_tokenizer_json": {
                    "path": f"{FOLDER}/tokenizer.json",
                    "checksum": "blake3:00",
                    "size": 7,
                }
            },
        },
    }
).encode()
