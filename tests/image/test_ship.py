"""Carry the K3 image over real SSH to hosts with engines of their own; count what is sent."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import bcrypt
import pytest

from bringup.core.errors import Blocked, CommandFailed, LockHeld, Unreachable
from bringup.core.event import Event
from bringup.core.words import Secret
from bringup.edge import cargo_stream, registry
from bringup.edge.engine import Engine
from bringup.edge.ssh import SshFleet
from bringup.flow import image as flow_image
from bringup.flow import pull as flow_pull
from bringup.flow import ship as flow_ship
from bringup.flow import upload as flow_upload
from bringup.flow.image_keep import FRESH_MINUTES, Kept, prune
from bringup.flow.ship import Arrived, Shipment, Shipping
from bringup.image import route
from bringup.image.route import Way
from tests.dynamo.processes import until

from . import standin
from .bench import REFERENCE, Bench, identity, image
from .dockerd import Dockerd, dockerd
from .sshd import Sshd, sshd

pytestmark = [pytest.mark.slow, pytest.mark.root, pytest.mark.xdist_group("image")]

NAMES = tuple(f"h{number}" for number in range(1, 9))
MB = 1_000_000
HEAVY, LIGHT = "heavy:1", "light:1"


@dataclass
class Yard:
    """Eight hosts, the controller's engine, and the line between them."""

    builder: Dockerd
    hosts: dict[str, Dockerd]
    line: Sshd
    folder: Path
    on_event: Callable[[Event], None] = lambda _: None
    events: list[Event] = field(default_factory=list)

    def listen(self, event: Event) -> None:
        self.events.append(event)
        self.on_event(event)

    def ship(self, reference: str, *names: str, way: Way | None = None) -> tuple[Shipment, int]:
        """Ship, and return with it the bytes that left on all lines."""
        self.events.clear()
        roots = {name: host.folder / "root" for name, host in self.hosts.items()}
        with self.line.fleet(roots) as fleet:
            shipment = flow_ship.ship(self.shipping(fleet, *names, way=way), reference)
            return shipment, sum(traffic.sent for traffic in fleet.traffic().values())

    def shipping(self, fleet: SshFleet, *names: str, way: Way | None = None) -> Shipping:
        return Shipping(
            source=self.builder.engine,
            hosts={name: fleet.remote(name) for name in names or tuple(self.hosts)},
            roots={name: str(host.folder / "root") for name, host in self.hosts.items()},
            engines={name: host.words for name, host in self.hosts.items()},
            folder=self.folder,
            limit=8,
            way=way,
            reopens=3,
            listen=self.listen,
        )

    def heavy(self, megabytes: int, seed: int) -> str:
        """Build an image on K3 with bytes that do not compress; return its ID."""
        context = self.folder / "context"
        context.mkdir(exist_ok=True)
        (context / "noise").write_bytes(random.Random(seed).randbytes(megabytes * MB))
        (context / "mark").write_text(str(seed))
        (context / "Dockerfile").write_text(f"FROM {REFERENCE}\nCOPY noise mark /opt/\n")
        self.builder.docker("build", "-q", "-t", HEAVY, str(context))
        return identity(self.builder, HEAVY)

    def light(self, folder: Path) -> str:
        """Make an image of its own with little in it; return its ID."""
        self.builder.docker("import", str(standin.small_tree(folder)), LIGHT)
        return identity(self.builder, LIGHT)

    def mark(self, name: str) -> str:
        """Run the image on a host and return what tells it from others."""
        return self.hosts[name].docker("run", "--rm", HEAVY, "cat", "/opt/mark")

    def at(self, host: str, share: float, act: Callable[[], None]) -> None:
        """Do something once when a part of the way to a host is done."""
        done = threading.Event()

        def watch(event: Event) -> None:
            if event.host == host and (event.share or 0) >= share and not done.is_set():
                done.set()
                act()

        self.on_event = watch


@pytest.fixture(scope="module")
def whole_yard(
    bench: Bench, builder: Dockerd, engines: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Yard]:
    """Eight hosts that have the K3 image: the first by a real pull, the others by a copy of it."""
    state = tmp_path_factory.mktemp("state")
    with ExitStack() as stack:
        line = stack.enter_context(sshd(tmp_path_factory.mktemp("sshd")))
        first = stack.enter_context(dockerd(engines / "h1", in_memory=True))
        yard = Yard(builder, {"h1": first}, line, state)
        shipment, _ = yard.ship(REFERENCE, way=Way.PULL)
        assert not shipment.failed, errors(shipment)
        first.stop()
        for name in NAMES[1:]:
            copy = dockerd(engines / name, data=first.folder / "data", in_memory=True)
            yard.hosts[name] = stack.enter_context(copy)
        first.start()
        yield yard


@pytest.fixture
def yard(whole_yard: Yard, monkeypatch: pytest.MonkeyPatch) -> Iterator[Yard]:
    monkeypatch.setattr(flow_upload, "REOPEN_S", 0.2)
    monkeypatch.setattr(flow_pull, "REOPEN_S", 0.2)
    yield whole_yard
    whole_yard.on_event = lambda _: None


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut a few megabytes into as many parts as some gigabytes would have."""
    monkeypatch.setattr(cargo_stream, "PART", 256 * 1024)


def errors(shipment: Shipment) -> list[str]:
    return [f"{a.error.message}\n{a.error.said}" for a in shipment.failed if a.error is not None]


def failure(arrived: Arrived) -> str:
    assert arrived.error is not None
    return f"{arrived.error.message} {arrived.error.said} {arrived.error.remedy}"


def test_first_copy_came_by_a_pull_through_the_tunnel(yard: Yard, bench: Bench) -> None:
    assert identity(yard.hosts["h1"]) == bench.built.image.id


def test_patch_alone_sends_under_a_megabyte_a_host_and_all_hold_one_image(
    yard: Yard, bench: Bench, tmp_path: Path
) -> None:
    old = identity(yard.hosts["h3"])
    new = flow_image.build(image(tmp_path, mark="# a later patch"), bench.order)
    shipment, sent = yard.ship(REFERENCE)
    assert not shipment.failed, errors(shipment)
    assert new.image.size > 500 * MB
    assert sent < len(NAMES) * MB
    assert {identity(host) for host in yard.hosts.values()} == {new.image.id}
    assert {arrived.identity for arrived in shipment.arrived.values()} == {new.image.id}
    kept = f"{REFERENCE}-{old.removeprefix('sha256:')[:12]}"
    assert identity(yard.hosts["h3"], kept) == old


def test_second_run_sends_nothing_and_says_why(yard: Yard, bench: Bench) -> None:
    yard.ship(REFERENCE, "h1", "h2")
    again, _ = yard.ship(REFERENCE, "h1", "h2")
    assert {arrived.route.way for arrived in again.arrived.values()} == {Way.SAME}
    assert sum(arrived.sent for arrived in again.arrived.values()) == 0
    assert any("is already there" in event.text for event in yard.events)


MEETING = """\
#!/bin/sh
if [ "$1" = load ]; then
  touch {folder}/{name}
  for _ in $(seq 1200); do
    [ "$(ls {folder} | wc -l)" -lt {count} ] || exec {docker} "$@"
    sleep 0.1
  done
  echo "{name} was alone" >&2
  exit 1
fi
exec {docker} "$@"
"""
"""An engine that loads an image once as many engines are at it."""


def test_a_patch_is_rolled_out_to_eight_hosts_side_by_side(
    yard: Yard, bench: Bench, tmp_path: Path
) -> None:
    """Each host's engine waits in the middle of its work until all others have come as far."""
    new = flow_image.build(image(tmp_path, mark="# for all"), bench.order)
    (tmp_path / "met").mkdir()
    engines = {}
    for name, host in yard.hosts.items():
        program = tmp_path / f"docker-{name}"
        docker, folder = " ".join(host.words), tmp_path / "met"
        program.write_text(
            MEETING.format(folder=folder, name=name, count=len(NAMES), docker=docker)
        )
        program.chmod(0o755)
        engines[name] = (str(program),)
    with yard.line.fleet(
        {name: host.folder / "root" for name, host in yard.hosts.items()}
    ) as fleet:
        shipment = flow_ship.ship(replace(yard.shipping(fleet), engines=engines), REFERENCE)
    assert not shipment.failed, errors(shipment)
    assert {identity(host) for host in yard.hosts.values()} == {new.image.id}
    assert {path.name for path in (tmp_path / "met").iterdir()} == set(NAMES)


@pytest.mark.usefixtures("small_parts")
def test_dropped_line_goes_on_where_it_was(yard: Yard) -> None:
    wanted = yard.heavy(6, seed=1)
    yard.at("h1", 0.3, yard.line.cut)
    shipment, sent = yard.ship(HEAVY, "h1")
    assert not shipment.failed, errors(shipment)
    assert shipment.arrived["h1"].identity == wanted
    assert sent < 7.5 * MB


def pruned(yard: Yard, name: str) -> Kept:
    """Prune a host as another operator would."""
    host = yard.hosts[name]
    with yard.line.fleet({name: host.folder / "root"}) as fleet:
        engine = Engine(fleet.remote(name), host.words, name)
        return prune({name: engine}, HEAVY, stage=flow_ship.STAGE, operator="bob")[0]


def parts(yard: Yard, name: str) -> list[Path]:
    return sorted(yard.hosts[name].folder.glob(f"root{flow_ship.STAGE}/*/*.part"))


def age(paths: Iterable[Path]) -> None:
    """Let parts and their folder seem older than any fresh one."""
    long_ago = time.time() - 60 * (FRESH_MINUTES + 5)
    for path in [*paths]:
        os.utime(path, (long_ago, long_ago))
        os.utime(path.parent, (long_ago, long_ago))


@pytest.mark.usefixtures("small_parts")
def test_parts_of_a_shipment_at_work_are_not_pruned_however_old(yard: Yard) -> None:
    wanted = yard.heavy(6, seed=2)
    told: list[Kept] = []

    def meddle() -> None:
        age(parts(yard, "h1"))
        told.append(pruned(yard, "h1"))

    yard.at("h1", 0.3, meddle)
    shipment, sent = yard.ship(HEAVY, "h1")
    assert isinstance(told[0].error, LockHeld)
    assert f"ships {HEAVY}" in f"{told[0].error.message} {told[0].error.said}"
    assert shipment.arrived["h1"].identity == wanted, errors(shipment)
    assert sent < 7.5 * MB
    assert pruned(yard, "h1").error is None


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("old", [False, True], ids=["fresh", "old"])
def test_a_cut_shipment_comes_out_right_though_somebody_prunes_before_the_line_is_back(
    yard: Yard, old: bool
) -> None:
    wanted = yard.heavy(6, seed=3 + old)
    left: list[int] = []

    def meddle() -> None:
        sent_so_far = len(parts(yard, "h1"))
        if old:
            age(parts(yard, "h1"))
        yard.line.cut()
        until(lambda: pruned(yard, "h1").error is None, "the lock went with the line")
        left.append(sent_so_far - len(parts(yard, "h1")))

    yard.at("h1", 0.3, meddle)
    shipment, sent = yard.ship(HEAVY, "h1")
    assert not shipment.failed, errors(shipment)
    assert shipment.arrived["h1"].identity == wanted
    assert (left[0] > 0) is old
    assert sent < (10 if old else 7.5) * MB


@pytest.mark.usefixtures("small_parts")
def test_line_that_stays_down_leaves_the_old_image_and_the_next_run_sends_the_rest(
    yard: Yard,
) -> None:
    yard.heavy(1, seed=10)
    yard.ship(HEAVY, "h2")
    wanted = yard.heavy(6, seed=11)
    yard.at("h2", 0.3, yard.line.stop)
    shipment, _ = yard.ship(HEAVY, "h2")
    assert isinstance(shipment.arrived["h2"].error, Unreachable)
    assert yard.mark("h2") == "10"
    yard.on_event = lambda _: None
    yard.line.start()
    again, _ = yard.ship(HEAVY, "h2")
    assert again.arrived["h2"].identity == wanted
    assert again.arrived["h2"].sent < 4.8 * MB
    assert yard.mark("h2") == "11"


def test_pull_goes_on_in_the_engine_while_the_line_is_down(yard: Yard) -> None:
    wanted = yard.heavy(40, seed=20)
    over = threading.Event()
    roots = {"h3": yard.hosts["h3"].folder / "root"}

    with yard.line.fleet(roots) as fleet:

        def cut_at_a_third() -> None:
            while not over.wait(0.02):
                if fleet.traffic().get("h3") and fleet.traffic()["h3"].sent > 13 * MB:
                    yard.line.cut()
                    break

        watcher = threading.Thread(target=cut_at_a_third)
        watcher.start()
        shipping = yard.shipping(fleet, "h3", way=Way.PULL)
        shipment = flow_ship.ship(shipping, HEAVY)
        over.set()
        watcher.join()
        sent = fleet.traffic()["h3"].sent
        connections = fleet.traffic()["h3"].connections
    assert not shipment.failed, errors(shipment)
    assert connections == 2
    assert shipment.arrived["h3"].identity == wanted
    assert sent < 1.3 * 40 * MB


@pytest.mark.usefixtures("small_parts")
def test_host_that_dies_midway_stops_itself_alone_and_needs_nothing_sent_again(
    yard: Yard,
) -> None:
    yard.heavy(1, seed=30)
    yard.ship(HEAVY, "h4", "h5")
    wanted = yard.heavy(3, seed=31)
    yard.at("h4", 0.5, lambda: yard.hosts["h4"].stop(signal.SIGKILL))
    shipment, _ = yard.ship(HEAVY, "h4", "h5")
    assert "cannot load what was sent on h4" in failure(shipment.arrived["h4"])
    assert shipment.arrived["h5"].identity == wanted
    yard.hosts["h4"].start()
    assert yard.mark("h4") == "30"
    again, _ = yard.ship(HEAVY, "h4")
    assert again.arrived["h4"].identity == wanted
    assert again.arrived["h4"].sent == 0


def test_full_disk_is_refused_before_anything_is_sent(yard: Yard) -> None:
    yard.heavy(1, seed=40)
    yard.ship(HEAVY, "h6")
    yard.heavy(2, seed=41)
    yard.hosts["h6"].resize(yard.hosts["h6"].used() + 50)
    try:
        shipment, sent = yard.ship(HEAVY, "h6")
    finally:
        yard.hosts["h6"].resize(4000)
    assert isinstance(shipment.arrived["h6"].error, Blocked)
    assert "free" in failure(shipment.arrived["h6"])
    assert "bringup image.prune heavy --host h6" in failure(shipment.arrived["h6"])
    assert sent < MB
    assert yard.mark("h6") == "40"


def test_disk_that_fills_midway_keeps_the_old_image_and_what_was_sent(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard.heavy(1, seed=50)
    yard.ship(HEAVY, "h7")
    wanted = yard.heavy(20, seed=51)
    monkeypatch.setattr(route, "SPARE", -(10**12))  # the check knows nothing
    yard.hosts["h7"].resize(yard.hosts["h7"].used() + 30)
    try:
        shipment, _ = yard.ship(HEAVY, "h7")
    finally:
        yard.hosts["h7"].resize(4000)
    assert isinstance(shipment.arrived["h7"].error, CommandFailed)
    assert "o space left" in failure(shipment.arrived["h7"])
    assert yard.mark("h7") == "50"
    again, _ = yard.ship(HEAVY, "h7")
    assert again.arrived["h7"].identity == wanted
    assert again.arrived["h7"].sent == 0


def test_archive_is_the_way_without_a_registry(
    yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "available", lambda: False)
    wanted = yard.light(tmp_path)
    shipment, _ = yard.ship(LIGHT, "h8")
    assert not shipment.failed, errors(shipment)
    assert shipment.arrived["h8"].route.way is Way.ARCHIVE
    assert shipment.arrived["h8"].identity == wanted


@pytest.fixture
def locked_registry(tmp_path: Path) -> Iterator[int]:
    """A registry of somebody's own, which wants a login; gives its port."""
    hashed = bcrypt.hashpw(b"open sesame", bcrypt.gensalt(4)).decode()
    (tmp_path / "users").write_text(f"shipper:{hashed}\n")
    auth = f"auth: {{htpasswd: {{realm: own, path: {tmp_path}/users}}}}\n"
    with registry.running(tmp_path / "own", more=auth) as own:
        yield own.port


def test_own_registry_is_used_with_a_login_that_does_not_stay(
    yard: Yard, locked_registry: int, tmp_path: Path
) -> None:
    wanted = yard.light(tmp_path)
    login = flow_pull.RegistryLogin("shipper", Secret("open sesame"))
    own = f"localhost:{locked_registry}"
    with yard.line.fleet({"h1": yard.hosts["h1"].folder / "root"}) as fleet:
        shipping = replace(yard.shipping(fleet, "h1"), own_registry=own, login=login)
        shipment = flow_ship.ship(shipping, LIGHT)
    assert not shipment.failed, errors(shipment)
    assert shipment.arrived["h1"].route.way is Way.REGISTRY
    assert shipment.arrived["h1"].identity == wanted
    settings = Path("~/.docker/config.json").expanduser()
    assert not settings.exists() or own not in settings.read_text()


def test_wrong_login_is_told_before_anything_is_pushed(
    yard: Yard, locked_registry: int, tmp_path: Path
) -> None:
    yard.light(tmp_path)
    login = flow_pull.RegistryLogin("shipper", Secret("guess"))
    with yard.line.fleet({"h1": yard.hosts["h1"].folder / "root"}) as fleet:
        own = f"localhost:{locked_registry}"
        shipping = replace(yard.shipping(fleet, "h1"), own_registry=own, login=login)
        with pytest.raises(CommandFailed, match="cannot log in to localhost") as raised:
            flow_ship.ship(shipping, LIGHT)
    assert "guess" not in f"{raised.value.message}{raised.value.said}{raised.value.ran}"


def test_image_that_nobody_built_is_refused(yard: Yard) -> None:
    with pytest.raises(Blocked, match="cannot ship nobody:1") as raised:
        yard.ship("nobody:1", "h1")
    assert raised.value.remedy == "bringup image.build nobody"
