"""Wrong inputs: each is told as what it is, with what to do, before anything is touched."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from bringup.core.errors import TemplateError, UsageError
from bringup.edge.render import Renderer
from bringup.flow.open import operator

from .conftest import Lab

ONE = ("--host", "b300-04")

pytestmark = pytest.mark.xdist_group("lab")


@pytest.fixture
def hosts_file(lab: Lab) -> Path:
    return lab.inventory / "hosts.yml"


def edit(path: Path, pattern: str, replacement: str) -> None:
    text = path.read_text()
    changed = re.sub(pattern, replacement, text, count=1)
    assert changed != text, f"{pattern} stands in {path}"
    path.write_text(changed)


def test_an_unknown_host_is_told_with_the_nearest_names(lab: Lab) -> None:
    done = lab.run("provision", "--host", "b300-40")
    assert done.returncode == 2
    assert "b300-40" in done.stderr
    assert "b300-04" in done.stderr


def test_no_host_named_is_told(lab: Lab) -> None:
    done = lab.run("provision")
    assert done.returncode == 2
    assert "--host" in done.stderr


def test_a_missing_inventory_is_told(lab: Lab) -> None:
    done = lab.run("provision", *ONE, "--inventory", str(lab.folder / "nowhere"))
    assert done.returncode == 2
    assert "cannot" in done.stderr
    assert "nowhere" in done.stderr


def test_an_unknown_key_is_told_with_file_line_and_nearest_key(lab: Lab, hosts_file: Path) -> None:
    edit(hosts_file, r"\n(\s+)address:", r"\n\1adress:")
    done = lab.run("provision", *ONE)
    assert done.returncode == 2
    assert re.search(r"hosts\.yml:\d+: hosts/b\S+/adress: ", done.stderr)
    assert "address" in done.stderr


def test_an_unknown_knob_is_told_with_the_nearest(lab: Lab) -> None:
    done = lab.run("provision", *ONE, "--set", "ready_timeout=9")
    assert done.returncode == 2
    assert "ready_timeout_s" in done.stderr


def test_a_changed_host_key_is_refused_with_both_fingerprints(lab: Lab, hosts_file: Path) -> None:
    other = "SHA256:" + "A" * 43
    text = hosts_file.read_text()
    if "host_key:" in text:
        edit(hosts_file, r"host_key: \S+", f"host_key: {other}")
    else:
        edit(hosts_file, r"(\n\s+)(address: )", rf"\1host_key: {other}\1\2")
    host = re.search(r"\n  (b\S+):", hosts_file.read_text().partition("\nhosts:")[2])
    assert host is not None
    done = lab.run("provision", "--host", host[1])
    assert done.returncode == 3
    assert other in done.stderr
    assert len(set(re.findall(r"SHA256:[A-Za-z0-9+/]{43}", done.stderr))) == 2


def test_a_wrong_user_is_told(lab: Lab, hosts_file: Path) -> None:
    edit(hosts_file, r"user: \S+", "user: nobody-here")
    done = lab.run("provision", *ONE)
    assert done.returncode == 3
    assert "nobody-here" in done.stderr


def test_a_host_that_is_down_is_told_and_the_other_goes_on(lab: Lab, hosts_file: Path) -> None:
    text = hosts_file.read_text()
    part = text.index("b200-01:")
    hosts_file.write_text(text[:part] + re.sub(r"port: \d+", "port: 1", text[part:], count=1))
    done = lab.run("provision", "--host", "b200-01", "--host", "b300-04", "--check")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "b200-01" in done.stderr
    assert "refused" in done.stderr
    assert "would change (b300-04)" in done.stdout


def test_sudo_that_asks_for_a_password_is_told(lab: Lab, hosts_file: Path) -> None:
    sudo = lab.root("b300-04") / "usr/bin/sudo"
    sudo.unlink(missing_ok=True)
    sudo.write_text('#!/bin/sh\necho "sudo: a password is required" >&2\nexit 1\n')
    sudo.chmod(0o755)
    edit(hosts_file, r"(\n\s+)user: (\S+)", r"\1user: \2\1sudo: true")
    done = lab.run("provision", *ONE)
    assert done.returncode in (1, 3)
    assert "password" in done.stderr
    assert "b300-04" in done.stderr


def test_a_folder_that_cannot_be_written_is_told_and_nothing_is_half(lab: Lab) -> None:
    blocked = lab.root("b300-04") / "opt"
    for path in sorted(blocked.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    blocked.rmdir()
    blocked.write_text("a file where a folder should be\n")
    done = lab.run("provision", *ONE)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "cannot" in done.stderr
    assert "/opt" in done.stderr
    assert not lab.scripts()


@pytest.mark.root
def test_a_full_disk_is_told_and_leaves_the_old_script(lab: Lab, tmp_path: Path) -> None:
    lab.run("provision", *ONE)
    (script,) = lab.root("b300-04").rglob("serve_dynamo_prefill.sh")
    folder = script.parent
    old = b"old\n"
    os.system(f"mount -t tmpfs -o size=16k tmpfs {folder}")
    try:
        script.write_bytes(old)
        (folder / "filler").write_bytes(b"x" * 8192)
        done = lab.run("provision", *ONE)
        assert done.returncode == 1, done.stdout + done.stderr
        assert "space" in done.stderr
        assert script.read_bytes() == old
        assert sorted(p.name for p in folder.iterdir()) == ["filler", script.name]
    finally:
        os.system(f"umount {folder}")


def test_a_template_that_names_a_missing_value_is_told_by_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "x.sh.j2").write_text("#!/bin/sh\necho {{ nothing_here | q }}\n")
    with pytest.raises(TemplateError, match=r"x\.sh\.j2:2.*nothing_here"):
        Renderer(tmp_path).text("x.sh.j2", {})


def test_a_user_without_an_entry_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)
    with pytest.raises(UsageError, match="cannot tell who runs this"):
        operator()


def test_a_root_that_is_no_folder_is_one_fault_and_no_bare_host(lab: Lab, hosts_file: Path) -> None:
    edit(hosts_file, r"root: \S*b300-07/root", "root: /nonexistent")
    done = lab.run("probe", "--host", "b300-07")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "root: /nonexistent is not a folder on b300-07" in done.stdout
    assert "apt-get" not in done.stdout
