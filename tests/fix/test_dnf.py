"""Packages against the real dnf and rpm of a host, with a repository of stand-ins of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bringup.core.facts import Facts
from bringup.core.host import Host, Login
from bringup.core.reading import Known
from bringup.core.receipt import Done, Outcome
from bringup.core.rules import World
from bringup.core.steps import State, Step
from bringup.probes.driver import Driver
from bringup.probes.identity import Identity
from bringup.remedies.hold import hold_driver
from bringup.steps.back import back
from bringup.steps.package import locker_step, package_step
from bringup.steps.version_lock import PLUGIN

from ..fleet.yard import FleetHost, Yard
from ..needed import require
from .hands import act, plan, settle, states
from .test_packages import shell

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("fix-dnf")]

PLUGIN_FILE = "/usr/lib/python3/dist-packages/dnf-plugins/versionlock.py"

# NAME VERSION REQUIRES CONFLICTS. Of Debian's bundle of plug-ins only versionlock is one that hosts
# of RHEL's kind have as well.
BUILD = r"""
set -eu
find /usr/lib/python3/dist-packages/dnf-plugins -name '*.py' ! -name versionlock.py -delete
mkdir -p /var/lib/rpms /etc/yum.repos.d
cd /var/lib/rpms
while IFS='|' read -r name version requires conflicts; do
  {
    printf 'Name: %s\nVersion: %s\nRelease: 1\nSummary: stand-in\nLicense: MIT\n' "$name" "$version"
    echo 'BuildArch: noarch'
    [ -z "$requires" ] || echo "Requires: $requires"
    [ -z "$conflicts" ] || printf 'Conflicts: %s\nObsoletes: %s\n' "$conflicts" "$conflicts"
    printf '%%description\nstand-in\n%%install\nmkdir -p %%{buildroot}/usr/share/stand-in\n'
    printf 'echo %s >%%{buildroot}/usr/share/stand-in/%s\n' "$version" "$name"
    printf '%%files\n/usr/share/stand-in/%s\n' "$name"
  } >"/tmp/$name.spec"
  rpmbuild -bb --define '_topdir /tmp/rpm' --define '_rpmdir /var/lib/rpms' "/tmp/$name.spec"
done
mkdir rivals
mv noarch/rival-* rivals/
createrepo_c -q rivals
createrepo_c -q -x 'rivals/*' .
printf '[local]\nname=local\nbaseurl=file:///var/lib/rpms\ngpgcheck=0\n' \
  >/etc/yum.repos.d/local.repo
rpm --initdb
dnf -q makecache
"""
PACKAGES = """\
kept|1.0||
kept|1.1||
python3-dnf-plugin-versionlock|1.0||
nvidia-driver|580.95.05||
libnvidia-ml|580.95.05||
nvidia-container-toolkit|1.18.0||
tool|1.0||
tool|1.1||
whole|1.0|part|
part|1.0||
wants-driver|1.0|kmod-nvidia-open|
kmod-nvidia-open|580.95.05||
rival|1.0||base
base|1.0||
"""


@pytest.fixture(scope="module")
def redhat(yard: Yard) -> Iterator[FleetHost]:
    """A host whose packages come by dnf."""
    require("dnf", "rpmbuild", "createrepo_c", PLUGIN_FILE)
    with yard.hosts(1) as (host,):
        host.exec("sh", "-c", BUILD, stdin=PACKAGES.encode())
        yield host


def dnf_step(name: str, **more: str | bool) -> Step:
    return package_step(name, manager="dnf", **more)  # type: ignore[arg-type]


def undone(host: FleetHost, step: Step, found: str, before: str) -> str:
    """Take a step back by what its receipt says; return what stands there then."""
    done = Done(step.id, Outcome.CHANGED, found=found, wanted=step.wanted, before=before)
    way = back(done).step
    assert way is not None
    assert states(settle([way], shell=shell(host))) == [State.SAME]
    return plan([step], shell=shell(host))[0].observation.found


def test_a_package_is_installed_once_and_undo_takes_it_with_what_came_along(
    redhat: FleetHost,
) -> None:
    step = dnf_step("whole")
    (before,) = plan([step], shell=shell(redhat))
    assert (before.observation.found, before.observation.detail.split()) == (
        "absent", ["dnf", "whole", "part"],
    )  # fmt: skip
    assert states(settle([step], shell=shell(redhat))) == [State.SAME]
    assert undone(redhat, step, "absent", before.observation.detail) == "absent"
    assert redhat.exec("rpm", "-q", "part", check=False).returncode == 1


def test_what_others_need_stays(redhat: FleetHost) -> None:
    settle([dnf_step("whole")], shell=shell(redhat))
    done = Done("package:part", Outcome.CHANGED, found="absent", wanted="installed", before="dnf ")
    way = back(done).step
    assert way is not None
    (planned,) = plan([way], shell=shell(redhat))
    assert planned.observation.found.startswith("kept: its removal would take whole")


def test_an_exact_version_and_a_floor_are_met_and_undo_brings_the_old_one_back(
    redhat: FleetHost,
) -> None:
    exact = dnf_step("tool", version="1.0")
    assert states(settle([exact], shell=shell(redhat))) == [State.SAME]
    floor = dnf_step("tool", floor="1.1")
    (before,) = plan([floor], shell=shell(redhat))
    assert before.observation.found == "installed 1.0-1"
    assert states(settle([floor], shell=shell(redhat))) == [State.SAME]
    assert undone(redhat, floor, "installed 1.0-1", before.observation.detail) == "installed 1.0-1"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("wants-driver", "would bring a driver or kernel: kmod-nvidia-open"),
        ("none-such", "no repository of this host offers none-such"),
    ],
)
def test_a_driver_or_nothing_is_never_installed(redhat: FleetHost, name: str, said: str) -> None:
    (planned,) = plan([dnf_step(name)], shell=shell(redhat))
    code, text = act(planned, shell=shell(redhat))
    assert (code, said in text) == (3, True), text
    assert redhat.exec("rpm", "-q", name, check=False).returncode == 1


def test_a_package_that_would_remove_another_is_refused(redhat: FleetHost) -> None:
    settle([dnf_step("base")], shell=shell(redhat))
    repo = b"[rivals]\nname=rivals\nbaseurl=file:///var/lib/rpms/rivals\ngpgcheck=0\n"
    redhat.exec("tee", "/etc/yum.repos.d/rivals.repo", stdin=repo)
    (planned,) = plan([dnf_step("rival")], shell=shell(redhat))
    code, text = act(planned, shell=shell(redhat))
    assert (code, "installing rival would remove packages" in text) == (3, True), text
    assert redhat.exec("rpm", "-q", "base", check=False).returncode == 0


def upgraded(host: FleetHost, name: str) -> str:
    """Upgrade everything, as an unattended upgrade does; return the version of a package."""
    host.exec("dnf", "-q", "-y", "upgrade")
    return host.text("rpm", "-q", "--qf", "%{VERSION}", name)


@pytest.fixture
def unlocked(redhat: FleetHost) -> Iterator[FleetHost]:
    """The host with nothing locked, before and after."""
    yield redhat
    redhat.exec("dnf", "-q", "versionlock", "clear")
    redhat.exec("dnf", "-q", "-y", "remove", "kept", check=False)


def test_a_held_package_is_kept_from_upgrades_once_and_undo_lets_it_go(
    unlocked: FleetHost,
) -> None:
    free = dnf_step("kept", version="1.0")
    settle([free], shell=shell(unlocked))
    held = dnf_step("kept", version="1.0", hold=True)
    (before,) = plan([held], shell=shell(unlocked))
    assert before.observation.found == "installed 1.0 free"
    assert states(settle([held], shell=shell(unlocked))) == [State.SAME]
    assert upgraded(unlocked, "kept") == "1.0"
    found, detail = "installed 1.0 free", before.observation.detail
    assert undone(unlocked, held, found, detail) == found
    assert upgraded(unlocked, "kept") == "1.1"


def test_a_held_package_comes_to_another_version_and_is_held_there(unlocked: FleetHost) -> None:
    settle([dnf_step("kept", version="1.0", hold=True)], shell=shell(unlocked))
    newer = dnf_step("kept", version="1.1", hold=True)
    assert states(settle([newer], shell=shell(unlocked))) == [State.SAME]
    assert unlocked.text("dnf", "-q", "-C", "versionlock", "list").split() == ["kept-0:1.1-1.*"]


def test_a_floor_does_not_lift_what_somebody_holds(unlocked: FleetHost) -> None:
    settle([dnf_step("kept", version="1.0", hold=True)], shell=shell(unlocked))
    (planned,) = plan([dnf_step("kept", floor="1.1")], shell=shell(unlocked))
    code, text = act(planned, shell=shell(unlocked))
    assert (code, "kept is held: somebody wants this version" in text) == (3, True), text
    assert upgraded(unlocked, "kept") == "1.0"


def test_the_hold_of_a_longer_name_is_none_of_a_shorter_one(unlocked: FleetHost) -> None:
    settle([dnf_step("kept", version="1.0")], shell=shell(unlocked))
    line = "kept-570-0:1.0-1.*\nkept\n!kept-0:1.0-1.*\nkept-0:0.9-1.*\n"
    unlocked.exec("tee", "/etc/dnf/plugins/versionlock.list", stdin=line.encode())
    (seen,) = plan([dnf_step("kept", version="1.0", hold=True)], shell=shell(unlocked))
    assert seen.observation.found == "installed 1.0 free"


def test_a_host_without_the_plugin_gets_it_first_and_says_that_nothing_is_held(
    unlocked: FleetHost,
) -> None:
    settle([dnf_step("kept", version="1.0", hold=True)], shell=shell(unlocked))
    assert states(plan([locker_step()], shell=shell(unlocked))) == [State.SAME]
    unlocked.exec("mv", PLUGIN_FILE, "/var/tmp/")
    try:
        (locker, kept) = plan(
            [locker_step(), dnf_step("kept", version="1.0", hold=True)], shell=shell(unlocked)
        )
        assert locker.observation.found == "absent"
        assert kept.observation.found == "installed 1.0 free"
        assert act(locker, shell=shell(unlocked))[0] == 0
        assert unlocked.exec("rpm", "-q", PLUGIN).returncode == 0
        code, text = act(kept, shell=shell(unlocked))
        assert (code, "dnf cannot lock kept at its version" in text) == (3, True), text
    finally:
        unlocked.exec("mv", "/var/tmp/versionlock.py", PLUGIN_FILE)


def test_the_drivers_packages_are_held_but_not_the_toolkit_and_undo_lets_them_go(
    unlocked: FleetHost,
) -> None:
    names = ("nvidia-driver", "libnvidia-ml", "nvidia-container-toolkit")
    unlocked.exec("dnf", "-q", "-y", "install", *names)
    driver = Known(Driver(loaded=Known("580.95.05")))
    facts = Facts({Identity: Known(Identity("", os_id="rhel")), Driver: driver})
    _, step = hold_driver(World(Host("h1", Login("")), facts))
    (before,) = plan([step], shell=shell(unlocked))
    assert before.observation.found == "not held: libnvidia-ml nvidia-driver"
    assert states(settle([step], shell=shell(unlocked))) == [State.SAME]
    found = before.observation.found
    assert undone(unlocked, step, found, "") == found
    unlocked.exec("dnf", "-q", "-y", "remove", *names)


TOML = """\
version = "1.0"

# bash is of no interest
[[packages]]
name = "kept"
comment = "Added by 'versionlock add' command"
[[packages.conditions]]
comparator = "{sign}"
key = "evr"
value = "{evr}"

[[packages]]
name = "other"
[[packages.conditions]]
key = "evr"
comparator = "="
value = "2:9-1"
"""


@pytest.mark.parametrize(
    ("sign", "evr", "found"),
    [("=", "1.0-1", "held"), ("=", "0:1.0-1", "held"), ("=", "0.9-1", "free"),
     ("!=", "1.0-1", "free")],
)  # fmt: skip
def test_locks_of_dnf_5_are_read_from_its_own_file(
    unlocked: FleetHost, sign: str, evr: str, found: str
) -> None:
    """The program is dnf 4 by another name here: only the file is read."""
    settle([dnf_step("kept", version="1.0")], shell=shell(unlocked))
    text = TOML.format(sign=sign, evr=evr)
    unlocked.exec("tee", "/etc/dnf/versionlock.toml", stdin=text.encode())
    rename = "cp /usr/bin/dnf-3 /usr/local/sbin/dnf5; ln -s dnf5 /usr/local/sbin/dnf"
    unlocked.exec("sh", "-c", rename)
    try:
        (seen,) = plan([dnf_step("kept", version="1.0", hold=True)], shell=shell(unlocked))
        assert seen.observation.found == f"installed 1.0 {found}"
    finally:
        unlocked.exec("rm", "/usr/local/sbin/dnf", "/usr/local/sbin/dnf5")
