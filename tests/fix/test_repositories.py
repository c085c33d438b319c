"""A repository of the inventory: added with its key, by which apt checks it, and taken back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bringup.core.host import Repository
from bringup.core.reading import Absent
from bringup.core.rules import World
from bringup.core.steps import Step
from bringup.probes.container import ContainerToolkit
from bringup.probes.identity import Identity
from bringup.remedies.sources import packages, source_of

from ..fleet.yard import FleetHost, Yard
from ..rules.situations import world
from .hands import act, plan, settle, states
from .test_packages import shell
from .test_provision_fix import Desk, desk_for, statuses

UBUNTU = Identity("h", "ubuntu", "24.04")
ROCKY = Identity("h", "rocky", "9.4")
TOOLKIT = "nvidia-container-toolkit"
OWN = Repository("own", "https://mirror.example.com/toolkit", ("/",), key=b"k",
                 packages=("nvidia-container-*",), systems=("ubuntu 24.04", "rocky"))  # fmt: skip


def at(identity: Identity, *repositories: Repository) -> World:
    of = world(identity, absent={ContainerToolkit: Absent("no toolkit")})
    return replace(of, host=replace(of.host, repositories=repositories))


def ids(steps: tuple[Step, ...]) -> list[str]:
    return [step.id for step in steps]


@pytest.mark.parametrize(
    ("identity", "wanted"),
    [
        (UBUNTU, ["file:/etc/apt/keyrings/bringup-own.gpg",
                  "file:/etc/apt/sources.list.d/bringup-own.sources", f"package:{TOOLKIT}"]),
        (ROCKY, ["file:/etc/pki/rpm-gpg/RPM-GPG-KEY-bringup-own",
                 "file:/etc/yum.repos.d/bringup-own.repo", f"package:{TOOLKIT}"]),
        (Identity("h", "ubuntu", "22.04"), [f"package:{TOOLKIT}"]),
        (Identity("h", "alpine", "3.20"), []),
    ],
)  # fmt: skip
def test_a_package_brings_the_repository_that_names_it_on_the_systems_it_is_for(
    identity: Identity, wanted: list[str]
) -> None:
    assert ids(packages(at(identity, OWN), TOOLKIT)) == wanted


def test_a_package_that_no_repository_names_brings_none() -> None:
    assert ids(packages(at(UBUNTU, OWN), "nvlsm")) == ["package:nvlsm"]
    assert source_of(at(UBUNTU, OWN), "nvlsm") is None


@pytest.fixture(scope="module")
def stocked(yard: Yard, bare: Path) -> Iterator[FleetHost]:
    """A host with a signed repository on its disk that its apt does not know."""
    with yard.hosts(1, init="systemd", over=bare) as (host,):
        host.exec("sh", "-c", SIGN)
        yield host


SIGN = r"""
set -eu
mv /var/lib/stand-in /srv/toolkit
rm /etc/apt/sources.list.d/stand-in.list
rm -rf /var/lib/apt/lists/*
cd /srv/toolkit
export GNUPGHOME=/srv/gnupg
mkdir -m 700 "$GNUPGHOME"
gpg -q --batch --passphrase '' --quick-gen-key 'Tests <tests@example.com>' ed25519 sign never
gpg --armor --export >/srv/key.asc
sum=$(sha256sum Packages | cut -d ' ' -f 1)
printf 'Date: %s\nSHA256:\n %s %s Packages\n' "$(date -Ru)" "$sum" "$(stat -c %s Packages)" >Release
gpg -q --batch --clearsign -o InRelease Release
gpgconf --kill all
"""


def repository(host: FleetHost, **more: object) -> Repository:
    key = host.exec("cat", "/srv/key.asc").stdout
    given = {"suites": ("./",), "key": key, "packages": ("nvidia-container-*",), **more}
    return Repository("toolkit", "file:/srv/toolkit", **given)  # type: ignore[arg-type]


def desk_with(host: FleetHost, yard: Yard, folder: Path) -> Desk:
    """Return a desk whose inventory names the repository, by the key's file and sum."""
    desk = desk_for(folder, host, yard)
    key = host.exec("cat", "/srv/key.asc").stdout
    place = desk.folder / "inventory"
    (place / "keys").mkdir()
    (place / "keys/toolkit.asc").write_bytes(key)
    sum_ = hashlib.sha256(key).hexdigest()
    text = (
        "repositories:\n  toolkit:\n    uri: file:/srv/toolkit\n"
        f"    key: {{file: keys/toolkit.asc, sha256: {sum_}}}\n"
        "    packages: [docker.io, nvidia-container-*]\n"
    )
    hosts = (place / "hosts.yml").read_text()
    (place / "hosts.yml").write_text(f"{text}hosts: {hosts.partition(':')[2].strip()[:-1]}\n")
    return desk


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.xdist_group("fix-hosts")
def test_an_unknown_repository_is_named_with_the_lines_that_add_it(stocked: FleetHost) -> None:
    (step,) = packages(at(UBUNTU), TOOLKIT)
    (planned,) = plan([step], shell=shell(stocked))
    assert planned.observation.found == "absent, and no package list has it"
    code, text = act(planned, shell=shell(stocked))
    assert code == 3
    assert f"{TOOLKIT} is in NVIDIA's container toolkit repository" in text
    assert "repositories: {container-toolkit: {uri: https://nvidia.github.io/" in text


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.xdist_group("fix-hosts")
def test_a_repository_comes_with_its_package_and_goes_with_undo(
    stocked: FleetHost, yard: Yard, tmp_path: Path
) -> None:
    desk = desk_with(stocked, yard, tmp_path)
    assert statuses(desk.objects("provision", "--fix-only", "CTR-01"))["CTR-01"] == "pass"
    listed = stocked.text("cat", "/etc/apt/sources.list.d/bringup-toolkit.sources")
    assert "Signed-By: /etc/apt/keyrings/bringup-toolkit.asc" in listed
    second = desk.objects("provision", "--fix-only", "CTR-01")
    assert second[0].get("fix_receipts", []) == []
    undone = desk.run("undo")
    assert undone.returncode == 0, undone.stdout + undone.stderr
    look = "ls /etc/apt/sources.list.d /etc/apt/keyrings; command -v docker || :"
    left = stocked.text("sh", "-c", look)
    assert ("toolkit" in left, "docker" in left) == (False, False), left


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.xdist_group("fix-hosts")
def test_a_repository_signed_by_another_key_gives_no_package(stocked: FleetHost) -> None:
    wrong = (Path(__file__).parents[2] / "inventory/keys/example.asc").read_bytes()
    steps = packages(at(UBUNTU, repository(stocked, key=wrong)), TOOLKIT)
    stocked.exec("sh", "-c", "rm -rf /var/lib/apt/lists/*")
    *files, package = plan(steps, shell=shell(stocked))
    for planned in files:
        act(planned, shell=shell(stocked))
    code, text = act(package, shell=shell(stocked))
    stocked.exec("sh", "-c", "rm /etc/apt/keyrings/bringup-* /etc/apt/sources.list.d/bringup-*")
    assert code == 3, text
    assert "NO_PUBKEY" in text or "not signed" in text or "signatures" in text


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.xdist_group("fix-hosts")
def test_a_repository_that_the_host_has_by_another_file_is_not_added_again(
    stocked: FleetHost,
) -> None:
    theirs = "deb [trusted=yes] file:/srv/toolkit ./\n"
    stocked.exec("tee", "/etc/apt/sources.list.d/theirs.list", stdin=theirs.encode())
    steps = packages(at(UBUNTU, repository(stocked)), TOOLKIT)
    assert [planned.is_change for planned in plan(steps, shell=shell(stocked))[:2]] == [False] * 2
    assert all(state.value == "same" for state in states(settle(steps, shell=shell(stocked))))
