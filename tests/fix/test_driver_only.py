"""A driver-only host becomes ready, the second plan is empty, and `undo` brings its tree back."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..fleet.yard import FleetHost, Yard
from .hardware import clothe, driver_only
from .test_provision_fix import Desk, desk_for

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("fix-hosts")]

DEPLOYMENT = """\
engine: vllm
model: {served_name: m, path: /raid/m, weights_gib: 1}
image: {name: own, reference: "example.org/vllm:1", engine_version: 0.24.0}
roles: {serve: {mode: aggregated, hosts: h1}}
"""
MODEL = r"""
mkdir -p /raid/m && cd /raid/m
for name in config tokenizer tokenizer_config generation_config; do echo '{}' >$name.json; done
python3 -c '
import json, struct
size = 2_000_000
head = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
with open("model-00001-of-00001.safetensors", "wb") as shard:
    shard.write(struct.pack("<Q", len(head)) + head + bytes(size))
index = {"metadata": {"total_size": size}, "weight_map": {"w": shard.name}}
json.dump(index, open("model.safetensors.index.json", "w"))'
"""
FIX = ("--fix", "--fix-level", "service")


@pytest.fixture
def desk(yard: Yard, bare: Path, tmp_path: Path) -> Iterator[Desk]:
    """An operator before eight B300 with their driver and a model, and nothing else."""
    with yard.hosts(1, init="systemd", over=bare) as (host,):
        host.exec("apt-get", "-q", "-y", "install", "nvidia-driver-580-open")
        clothe(host, driver_only())
        host.exec("sh", "-c", MODEL)
        text = DEPLOYMENT.replace("h1", host.name)
        yield desk_for(tmp_path, host, yard, gpu_count=8, kind="b300", deployment=text)


ASIDE = ("var/log/", "var/lib/dpkg/", "var/lib/apt/", "var/cache/", "etc/ld.so.cache",
         "var/lib/systemd/deb-systemd-helper", "usr/share/mime", "var/lib/private",
         "usr/lib/lab/")  # fmt: skip
"""What package managers and logs keep for themselves."""


def written(host: FleetHost) -> dict[str, str]:
    """Return kind, mode, owner and content of all that the host has of its own, by name."""
    top = host.folder / "up"
    paths = (path for path in top.rglob("*"))
    named = {str(path.relative_to(top)): path for path in paths}
    return {name: state(path) for name, path in named.items() if not name.startswith(ASIDE)}


def state(path: Path) -> str:
    """Return what stands at a place; the overlay's mark for what was taken away is absence."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    if stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
        return "absent"
    what = f"{found.st_mode:o} {found.st_uid}:{found.st_gid}"
    if path.is_symlink():
        return f"{what} -> {path.readlink()}"
    return f"{what} {hashlib.sha256(path.read_bytes()).hexdigest()}" if path.is_file() else what


def differences(before: dict[str, str], after: dict[str, str]) -> str:
    """Return what differs, a line each; a name that one side lacks is as on the machine below."""
    names = sorted(before.keys() | after.keys())
    pairs = {
        n: tuple(side.get(n) or state(Path("/", n)) for side in (before, after)) for n in names
    }
    return "".join(f"{n}: {one}, now {now}\n" for n, (one, now) in pairs.items() if one != now)


def test_a_driver_only_host_becomes_ready_and_undo_brings_its_tree_back(desk: Desk) -> None:
    before = written(desk.host)
    check = desk.objects("provision", *FIX, "--check")[0]
    assert check["exit"] == 5, "all that blocks is fixed, or looked at again after fixes"
    one = desk.objects("provision", "--fix-only", "TIM-01", "--check")[0]
    assert one["exit"] == 4, "a clock that runs right starts no GPU"
    assert differences(before, written(desk.host)) == "", "check mode writes nothing"

    first = desk.objects("provision", *FIX)[0]
    assert (first["plan"]["verdict"], first["exit"], first["error"]) == ("ready", 0, None)

    second = desk.objects("provision", *FIX)[0]
    changes = [step["id"] for step in second["plan"]["steps"] if step["state"] != "same"]
    assert (changes, second.get("fix_receipts", [])) == ([], [])

    undone = desk.run("undo", "--to", desk.receipts()[0])
    assert undone.returncode == 0, undone.stdout + undone.stderr
    assert differences(before, written(desk.host)) == ""
