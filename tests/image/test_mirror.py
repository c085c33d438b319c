"""A base that came from a registry by digest: mirrored with its digests, never sent again."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path

import pytest

from bringup.core.errors import CommandFailed
from bringup.core.event import Event
from bringup.core.reading import Absent, Known, Reading, Unknown
from bringup.core.remote import Traffic
from bringup.edge import http, registry, skopeo
from bringup.edge.image_file import read_image
from bringup.edge.pip import Index
from bringup.edge.registry import Registry
from bringup.flow import ship as flow_ship
from bringup.flow.image_check import check
from bringup.flow.load import loaded
from bringup.flow.ship import Arrived, Shipping
from bringup.image.facts import ImageFacts
from bringup.image.mirror import Layer, Manifest, Means, estimated, kept, mirror, parse_manifest
from bringup.image.route import Way

from .bench import identity
from .dockerd import Dockerd, dockerd
from .folders import make_folder
from .sshd import Sshd, sshd

MB = 1_000_000
D = "sha256:" + "d" * 64
BASE = f"lmsysorg/sglang@{D}"
OWN = ImageFacts("sha256:own", ("a", "b"), size=100)
BUILT = ImageFacts("sha256:built", ("a", "b", "c"), size=130)
MANIFEST = Manifest(D, "sha256:own", (Layer("x", 30), Layer("y", 12)))


@pytest.mark.parametrize(
    ("base", "own", "offered", "means", "why"),
    [
        (BASE, Known(OWN), Known(MANIFEST), Means.COPY, "keep its layers"),
        ("lmsysorg/sglang:k3", Absent(), Absent(), Means.PUSH, "no digest"),
        (BASE, Absent(), Absent(), Means.PUSH, "from an archive or a build"),
        (BASE, Unknown("timed out"), Absent(), Means.PUSH, "timed out"),
        (BASE, Known(replace(OWN, layers=("z",))), Known(MANIFEST), Means.PUSH, "does not lie on"),
        (BASE, Known(OWN), Absent("no skopeo"), Means.PUSH, "no skopeo"),
        (BASE, Known(OWN), Unknown("401"), Means.PUSH, "401"),
        (BASE, Known(OWN), Known(Manifest(D, "sha256:x")), Means.PUSH, "another image"),
        (BASE, Known(replace(OWN, id=D)), Known(MANIFEST), Means.PUSH, "keeps compressed layers"),
    ],
)
def test_base_is_copied_only_where_a_push_will_use_the_copy(
    base: str, own: Reading[ImageFacts], offered: Reading[Manifest], means: Means, why: str
) -> None:
    found = mirror(base, BUILT, own, offered)
    assert found.means is means
    assert why in str(found)


def test_kept_layers_are_all_of_the_base_or_none() -> None:
    pushed = Manifest("p", "c", (*MANIFEST.layers, Layer("z", 1)))
    anew = Manifest("p", "c", (Layer("x", 30), Layer("other", 13), Layer("z", 1)))
    assert (kept(MANIFEST, pushed), kept(MANIFEST, anew), kept(None, pushed)) == (2, 0, 0)


def test_sizes_before_a_push_are_the_registrys_own_for_the_base() -> None:
    assert estimated(BUILT, Known(OWN), MANIFEST) == [30, 12, 30]
    assert estimated(BUILT, Known(OWN), None) == [25, 25, 30]
    assert estimated(BUILT, Absent(), None) == [21, 21, 21]


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"layers": [1], "config": {}}', b"\xff"])
def test_garbage_is_no_manifest(body: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_manifest(body)


def test_list_names_images_by_platform_without_attestations() -> None:
    entries = [
        {"digest": "sha256:1", "platform": {"os": "linux", "architecture": "amd64"}},
        {"digest": "sha256:2", "platform": {"os": "unknown", "architecture": "unknown"}},
    ]
    found = parse_manifest(json.dumps({"manifests": entries}).encode())
    assert found.platforms == {"linux/amd64": "sha256:1"}


def test_registry_without_room_says_so_where_the_engine_only_saw_an_error(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "log").write_text("time=now level=error msg=write: no space left on device\n")
    failed = CommandFailed("cannot push k3:1: exit 1", ran="docker push", exit_code=1, said="500")
    told = Registry(tmp_path / "data", 1).explained(failed)
    assert "the registry's disk is full" in told.message
    assert "--state FOLDER" in told.remedy


# From here on with real registries, engines and lines.

TEAM = "team/base"
REFERENCE = "patched:1"


def base_archive(path: Path) -> Path:
    """Write what skopeo reads: a small system, and 8 MB that do not compress."""
    path.mkdir()
    (path / "noise").write_bytes(random.Random(7).randbytes(8 * MB))
    with tarfile.open(path / "root.tar", "w") as tar:
        tar.add(path / "noise", "opt/noise")
    return path / "root.tar"


@dataclass
class Field:
    """A registry of the base's maker, an engine here, one on a host, the line between them."""

    team: Registry
    digest: str
    builder: Dockerd
    host: Dockerd
    line: Sshd
    folder: Path
    cost: Traffic = dataclasses.field(default_factory=Traffic)

    @property
    def base(self) -> str:
        return f"localhost:{self.team.port}/{TEAM}@{self.digest}"

    def build(self, mark: str) -> str:
        """Build on the base by its digest; return the image's ID."""
        body = BytesIO()
        with tarfile.open(fileobj=body, mode="w") as tar:
            for name, text in (
                ("Dockerfile", f"FROM {self.base}\nCOPY mark /opt/"),
                ("mark", mark),
            ):
                info = tarfile.TarInfo(name)
                info.size = len(text)
                tar.addfile(info, BytesIO(text.encode()))
        words = (*self.builder.words, "build", "-q", "-t", REFERENCE, "-")
        subprocess.run(words, input=body.getvalue(), check=True, capture_output=True)
        return identity(self.builder, REFERENCE)

    def ship(self, state: str, way: Way | None = None) -> tuple[Arrived, int, list[Event]]:
        """Ship to the host from a state folder of its own; return what left on the line too."""
        events: list[Event] = []
        with self.line.fleet({"far": self.host.folder / "root"}) as fleet:
            shipping = Shipping(
                source=self.builder.engine, hosts={"far": fleet.remote("far")},
                engines={"far": self.host.words}, folder=self.folder / state, way=way,
                roots={"far": str(self.host.folder / "root")}, base=self.base,
                listen=events.append,
            )  # fmt: skip
            with loaded(shipping, REFERENCE, only_look=True) as ready:
                foreseen = flow_ship.plan_shipment(shipping, ready.cargo)["far"].route
            looked = fleet.traffic()["far"]
            shipment = flow_ship.ship(shipping, REFERENCE)
            cost = fleet.traffic()["far"]
        sent = cost.sent
        self.cost = replace(
            cost, commands=cost.commands - looked.commands, sent=cost.sent - looked.sent
        )
        arrived = shipment.arrived["far"]
        assert arrived.error is None, arrived.error
        if arrived.route.known:
            assert arrived.route.sends == pytest.approx(foreseen.sends, abs=100_000)
        return arrived, sent, events


def publish(maker: Dockerd, folder: Path, reference: str) -> None:
    """Push as somebody else's tool does: packed otherwise than docker's push would."""
    maker.docker("save", "-o", str(folder / "base.tar"), "base:1")
    tls = ("--dest-tls-verify=false", "--insecure-policy")
    source = f"docker-archive:{folder}/base.tar"
    words = ["skopeo", "copy", "-q", *tls, source, f"docker://{reference}"]
    subprocess.run(words, check=True, capture_output=True)


def put_list(team: Registry, digest: str) -> str:
    """Make a list of platforms whose own is an image that is there; return the list's digest."""
    kind = "application/vnd.docker.distribution.manifest"
    home = f"http://127.0.0.1:{team.port}/v2/{TEAM}/manifests"
    one = http.ask(f"{home}/{digest}", headers={"Accept": f"{kind}.v2+json"}).body
    platform = {"os": "linux", "architecture": "amd64"}
    entry = {"mediaType": f"{kind}.v2+json", "size": len(one), "digest": digest}
    listed = {
        "schemaVersion": 2,
        "mediaType": f"{kind}.list.v2+json",
        "manifests": [{**entry, "platform": platform}],
    }
    body = json.dumps(listed).encode()
    sort = {"Content-Type": f"{kind}.list.v2+json"}
    said = http.ask(f"{home}/listed", method="PUT", body=body, headers=sort)
    assert said.status == 201, said.text
    return "sha256:" + hashlib.sha256(body).hexdigest()


@pytest.fixture(scope="module")
def field(engines: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    folder = tmp_path_factory.mktemp("field")
    with ExitStack() as stack:
        team = stack.enter_context(registry.running(folder / "team"))
        builder = stack.enter_context(dockerd(engines / "mirror-here"))
        host = stack.enter_context(dockerd(engines / "mirror-far"))
        maker = stack.enter_context(dockerd(engines / "mirror-maker"))
        maker.docker("import", str(base_archive(folder / "base")), "base:1")
        publish(maker, folder, f"localhost:{team.port}/{TEAM}:1")
        found = team.manifest(TEAM, "1")
        assert isinstance(found, Known)
        line = stack.enter_context(sshd(folder / "sshd"))
        yard = Field(team, found.value.digest, builder, host, line, folder)
        for engine in (builder, host):
            engine.docker("pull", "-q", yard.base)
        yield yard


real = [pytest.mark.slow, pytest.mark.root, pytest.mark.xdist_group("image")]


class TestMirrored:
    pytestmark = real

    def test_pull_leaves_out_the_base_that_the_host_pulled_by_digest(self, field: Field) -> None:
        wanted = field.build("one")
        arrived, sent, events = field.ship("state", Way.PULL)
        assert arrived.identity == wanted
        assert sent < MB
        assert arrived.route.known == 1
        assert "layers are there by the base's own digest" in arrived.route.why
        assert any("skopeo copies about 7.6 MiB" in event.text for event in events)

    def test_digest_of_the_base_is_true_on_the_mirror(self, field: Field) -> None:
        field.build("one")
        field.ship("state", Way.PULL)
        with registry.running(field.folder / "state/registry") as local:
            ours = local.manifest("patched", field.digest)
            theirs = field.team.manifest(TEAM, field.digest)
        assert isinstance(ours, Known)
        assert ours == theirs
        assert ours.value.digest == field.digest

    def test_base_is_copied_once(self, field: Field) -> None:
        field.build("one")
        field.ship("state", Way.PULL)
        wanted = field.build("two")
        arrived, sent, events = field.ship("state")
        assert arrived.identity == wanted
        assert sent < MB
        assert any("is mirrored here" in event.text for event in events)
        assert not any("Copying" in event.text for event in events)

    def test_patch_costs_a_look_and_one_command_that_brings_it(self, field: Field) -> None:
        field.build("cheap")
        field.ship("state")
        assert (field.cost.connections, field.cost.commands) == (1, 2)
        assert field.cost.sent < 20_000
        field.ship("state")
        assert field.cost.commands == 1

    def test_pull_costs_the_lock_and_seven_commands_besides_the_polls(self, field: Field) -> None:
        field.build("pulled")
        _, _, events = field.ship("state", Way.PULL)
        polls = sum(event.text.startswith("pulling:") for event in events)
        assert field.cost.connections == 1
        assert field.cost.commands - polls == 8

    def test_of_a_list_of_platforms_the_engines_own_is_mirrored(self, field: Field) -> None:
        listed = replace(field, digest=put_list(field.team, field.digest))
        for engine in (field.builder, field.host):
            engine.docker("pull", "-q", listed.base)
        wanted = listed.build("listed")
        arrived, sent, _ = listed.ship("listed", Way.PULL)
        assert (arrived.identity, arrived.route.known) == (wanted, 1)
        assert sent < MB
        with registry.running(field.folder / "listed/registry") as local:
            kept_as = local.manifest("patched", f"base-{listed.digest[7:19]}")
        assert isinstance(kept_as, Known)
        assert kept_as.value.digest == field.digest

    def test_without_skopeo_the_push_goes_on_and_says_why(
        self, field: Field, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(skopeo, "available", lambda: False)
        wanted = field.build("three")
        arrived, sent, events = field.ship("other", Way.PULL)
        assert arrived.identity == wanted
        assert arrived.route.known == 0
        assert sent > 8 * MB
        assert any("no skopeo on the controller" in event.text for event in events)
        again, sent, _ = field.ship("other")
        assert (again.identity, again.sent) == (wanted, 0)

    def test_a_tag_alone_is_told_with_the_digest_that_its_registry_has(
        self, field: Field, tmp_path: Path
    ) -> None:
        base = {"reference": f"localhost:{field.team.port}/{TEAM}:1"}
        image = read_image(make_folder(tmp_path, base=base, packages=[], no_deps=[]))
        found = {finding.id: finding for finding in check(image, index=Index(wheels=tmp_path))}
        told = f"in its registry it stands for {field.digest} now"
        assert told in found["IMG-01"].evidence

    def test_registry_of_the_base_that_is_gone_is_said(self, field: Field) -> None:
        found = skopeo.manifest("localhost:1/team/base@" + field.digest)
        assert isinstance(found, Unknown)
        assert "cannot ask its registry" in found.why
        missing = skopeo.manifest(f"localhost:{field.team.port}/{TEAM}@{D}")
        assert isinstance(missing, Absent)
