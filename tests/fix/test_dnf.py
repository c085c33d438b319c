"""Packages against the real dnf and rpm of a host, with a repository of stand-ins of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bringup.core.receipt import Done, Outcome
from bringup.core.steps import State, Step
from bringup.steps.back import back
from bringup.steps.package import package_step

from ..fleet.yard import FleetHost, Yard
from ..needed import require
from .hands import act, plan, settle, states
from .test_packages import shell

pytestmark = [pytest.mark.root, pytest.mark.slow]

# NAME VERSION REQUIRES CONFLICTS
BUILD = r"""
set -eu
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
    require("dnf", "rpmbuild", "createrepo_c")
    with yard.hosts(1) as (host,):
        host.exec("sh", "-c", BUILD, stdin=PACKAGES.encode())
        yield host


def dnf_step(name: str, **more: str) -> Step:
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
