"""etcd, NATS and the frontend as containers by digest, on the host that a deployment names."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.dynamo.processes import until
from tests.fleet.yard import FleetHost, Yard

from .docked import NAME, TAG, Docked, docked
from .test_docker import said, start

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("serve-services")]

REGISTRY = """\
version: 0.1
storage: {filesystem: {rootdirectory: /var/lib/docker/registry}}
http: {addr: "127.0.0.1:5000"}
"""
PLACE = "127.0.0.1:5000/services"
SERVICES = ("etcd", "nats", "frontend")


@pytest.fixture(scope="module")
def hosts(yard: Yard, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Docked]:
    with docked(tmp_path_factory.mktemp("services"), yard, 2) as made:
        yield made


@pytest.fixture(scope="module")
def digest(hosts: Docked) -> str:
    """The services' image by digest, in a registry beside the host's docker and nowhere else."""
    host = hosts.hosts[1]
    host.exec("tee", "/etc/registry.yml", stdin=REGISTRY.encode())
    serve = (
        "setsid docker-registry serve /etc/registry.yml </dev/null >/var/log/registry.log 2>&1 &"
    )
    host.exec("sh", "-c", serve)
    host.exec("docker", "tag", TAG, f"{PLACE}:1")
    until(lambda: host.exec("docker", "push", f"{PLACE}:1", check=False).returncode == 0, "pushed")
    found = host.text("docker", "image", "inspect", "-f", "{{index .RepoDigests 0}}", f"{PLACE}:1")
    return found.strip()


@pytest.fixture
def shared(hosts: Docked, digest: str) -> Docked:
    """A worker on one host, its services on the other; written, not started, image not there."""
    made, place = hosts, hosts.hosts[1]
    made.clear()
    for host in made.hosts:
        host.exec("sh", "-c", "mkdir -p /model && echo '{}' >/model/config.json")
        host.exec("rm", "-rf", "/var/lib/bringup")
    place.exec("sh", "-c", "docker images -q | sort -u | xargs -r docker rmi -f")
    made.services = {
        "etcd": [f"http://{place.address}:2379"], "nats": f"nats://{place.address}:4222",
        "frontend": f"http://{place.address}:8000", "host": place.name,
        **{f"{name}_image": digest for name in SERVICES},
    }  # fmt: skip
    made.write({"worker": {"mode": "aggregated", "hosts": made.hosts[0].name}})
    return made


def place_of(made: Docked) -> FleetHost:
    return made.hosts[1]


def standing(made: Docked) -> dict[str, str]:
    """How the services stand, by name."""
    own = f"{place_of(made).name}/"
    states = made.states()
    return {key.removeprefix(own): word for key, word in states.items() if key.startswith(own)}


def began(made: Docked, name: str, host: FleetHost | None = None) -> str:
    words = ("docker", "inspect", "-f", "{{.State.StartedAt}}", f"{NAME}-{name}")
    return (host or place_of(made)).text(*words).strip()


def test_services_are_brought_by_digest_and_started_before_the_worker(shared: Docked) -> None:
    start(shared)
    assert standing(shared) == dict.fromkeys(SERVICES, "runs")
    order = [began(shared, "etcd"), began(shared, "nats")]
    worker = began(shared, "worker", shared.hosts[0])
    assert max(order) < worker < began(shared, "frontend")
    again = shared.run("serve.start")
    assert again.stdout.count("already so") >= len(SERVICES)
    assert [began(shared, "etcd"), began(shared, "nats")] == order
    done = shared.run("ready", "--now", "--json")
    seen = json.loads(done.stdout.splitlines()[-1])
    stages = {row["role"]: row["stage"] for row in seen["workers"]}
    assert stages == {**dict.fromkeys(SERVICES, "listed"), "worker": "engine"}
    assert seen["listed"] is True


def test_a_stop_leaves_services_running_until_they_are_asked_for(shared: Docked) -> None:
    start(shared)
    place = place_of(shared)
    place.exec("sh", "-c", f"curl -sf http://{place.address}:2379/v3/kv/put "
               """-d '{"key": "Zm9v", "value": "YmFy"}'""")  # fmt: skip
    assert shared.run("serve.stop").returncode == 0
    assert standing(shared) == {"etcd": "runs", "nats": "runs", "frontend": "not there"}
    assert shared.run("serve.stop", "--services").returncode == 0
    assert set(standing(shared).values()) == {"not there"}
    start(shared, "--role", "etcd")
    kept = place.text("sh", "-c", f"curl -sf http://{place.address}:2379/v3/kv/range "
                      """-d '{"key": "Zm9v"}'""")  # fmt: skip
    assert '"YmFy"' in kept


def test_a_service_with_other_settings_is_shown_and_the_others_are_left_alone(
    shared: Docked,
) -> None:
    start(shared)
    before = {name: began(shared, name) for name in SERVICES}
    shared.services["frontend"] = f"http://{place_of(shared).address}:8001"
    shared.write()
    assert standing(shared) == {"etcd": "runs", "nats": "runs", "frontend": "drifted"}
    refused = shared.run("serve.start", "--role", "frontend")
    assert refused.returncode == 4, said(refused)
    assert "+ --http-port 8001" in refused.stdout
    assert {name: began(shared, name) for name in SERVICES} == before
    start(shared, "--role", "frontend", "--recreate")
    assert standing(shared)["frontend"] == "runs"
    assert [began(shared, name) for name in ("etcd", "nats")] == [before["etcd"], before["nats"]]


def test_a_foreign_container_of_a_services_name_is_never_touched(shared: Docked) -> None:
    place = place_of(shared)
    place.exec("docker", "pull", shared.services["etcd_image"])
    place.exec("docker", "run", "-d", "--name", f"{NAME}-etcd", shared.services["etcd_image"],
               "/bin/sh", "-c", "while :; do sleep 1; done")  # fmt: skip
    before = shared.ids(place)
    refused = shared.run("serve.start")
    assert refused.returncode == 4, said(refused)
    assert f"{NAME}-etcd is not ours" in refused.stdout
    assert shared.ids(place) == before
    assert shared.ids(shared.hosts[0]) == []


@pytest.mark.parametrize(("port", "role"), [(4222, "nats"), (8000, "frontend")])
def test_a_port_that_somebody_holds_is_named_with_its_owner(
    shared: Docked, port: int, role: str
) -> None:
    place = place_of(shared)
    listener = f"import socket,time; s=socket.create_server(('', {port})); time.sleep(600)"
    place.exec("sh", "-c", f'setsid python3 -c "{listener}" </dev/null >/dev/null 2>&1 &')
    try:
        until(
            lambda: f":{port:04X} ".encode() in place.exec("cat", "/proc/net/tcp").stdout, "taken"
        )
        refused = shared.run("serve.start", "--role", role)
    finally:
        place.exec("pkill", "-f", f"{port}", check=False)
    assert refused.returncode == 4, said(refused)
    assert f"Port {port} of {role} is taken" in refused.stdout
    assert "python3" in refused.stdout
    assert shared.ids(place) == []


def test_a_digest_that_the_registry_has_not_is_told(shared: Docked) -> None:
    shared.services["etcd_image"] = f"{PLACE}@sha256:{'0' * 64}"
    shared.write()
    failed = shared.run("serve.start")
    assert failed.returncode == 1, said(failed)
    assert "cannot start toy-etcd" in failed.stderr
    assert "manifest unknown" in failed.stderr or "not found" in failed.stderr
    assert shared.ids(shared.hosts[0]) == []


def test_services_come_back_with_their_host(shared: Docked) -> None:
    start(shared)
    place = place_of(shared)
    place.power_off()
    place.power_on()
    until(lambda: standing(shared) == dict.fromkeys(SERVICES, "runs"), "the services are back")
