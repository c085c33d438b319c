"""Disks, mounts, arrays and the model's folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bringup.core.facts import Probe
from bringup.core.reading import Absent, Known, Unknown
from bringup.core.script import Section
from bringup.probes import container, model, storage
from bringup.probes.model import ModelConfig, ModelFolder
from bringup.probes.storage import Array, Arrays, Disk, Disks, Mount, Mounts

from .asking import SHELLS, ask

ALL = (
    *storage.PROBES,
    *(make("/m") for make in (model.model_probe, model.config_probe, model.speed_probe)),
)


def section(text: str, rc: int = 0) -> Section:
    return Section("x", rc, text)


@pytest.mark.parametrize("probe", ALL, ids=lambda probe: probe.name)
@given(text=st.text(st.characters(codec="utf-8") | st.sampled_from("\t\n\0:{}[]/")))
def test_garbage_is_unknown(probe: Probe[object], text: str) -> None:
    assert isinstance(probe.parse(section(text)), Unknown)


def folder_of_a_model(root: Path, shards: int = 2) -> Path:
    """A folder as the hub's cache lays it out: links into blobs, an index, small files."""
    blobs, folder = root / "raid/blobs", root / "raid/snapshots/K3"
    blobs.mkdir(parents=True)
    folder.mkdir(parents=True)
    names = [f"model-{i:05d}-of-{shards:05d}.safetensors" for i in range(1, shards + 1)]
    for number, name in enumerate(names):
        (blobs / str(number)).write_bytes(b"x" * 1000)
        (folder / name).symlink_to(f"../../blobs/{number}")
    weights = {f"layer.{i}.weight": names[i % shards] for i in range(10)}
    index = {"metadata": {"total_size": 1900}, "weight_map": weights}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))
    config = {"model_type": "kimi_k3", "architectures": ["K3"], "text_config": {"num_experts": 384}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text("{}")
    (root / "models").symlink_to("raid/snapshots")
    return folder


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_a_model_folder_is_listed_under_any_root(tmp_path: Path, shell: tuple[str, ...]) -> None:
    folder_of_a_model(tmp_path)
    probes = (model.model_probe("/models/K3"), model.config_probe("/models/K3"))
    facts = ask(*probes, root=str(tmp_path), shell=shell)
    found = facts[ModelFolder]
    assert isinstance(found, Known)
    assert found.value.real == "/raid/snapshots/K3"
    assert found.value.shards == tuple(sorted(found.value.weights))
    assert (found.value.weight_bytes, found.value.tensor_bytes) == (2000, 1900)
    assert set(found.value.sums) == {"config.json", "tokenizer_config.json"}
    config = facts[ModelConfig]
    assert isinstance(config, Known)
    assert config.value == ModelConfig(
        "kimi_k3", ("K3",), found.value.sums["config.json"], experts=384
    )


def test_a_shard_whose_blob_is_gone_is_missing(tmp_path: Path) -> None:
    folder_of_a_model(tmp_path)
    (tmp_path / "raid/blobs/1").unlink()
    found = ask(model.model_probe("/models/K3"), root=str(tmp_path))[ModelFolder]
    assert isinstance(found, Known)
    assert set(found.value.shards) - set(found.value.files) == {"model-00002-of-00002.safetensors"}


def test_equal_folders_have_one_identity_whatever_their_path(tmp_path: Path) -> None:
    identities = set()
    for name in ("a", "b"):
        folder_of_a_model(tmp_path / name)
        found = ask(model.model_probe("/models/K3"), root=str(tmp_path / name))[ModelFolder]
        assert isinstance(found, Known)
        identities.add(found.value.identity)
    assert len(identities) == 1


def test_a_path_that_is_not_there_is_absent(tmp_path: Path) -> None:
    facts = ask(model.model_probe("/no such"), model.config_probe("/x"), root=str(tmp_path))
    assert isinstance(facts[ModelFolder], Absent)
    assert isinstance(facts[ModelConfig], Absent)


def test_a_hung_mount_is_unknown_not_absent() -> None:
    found = model.parse_model(section("", 124))
    assert found == Unknown("timed out", "")


MOUNTS = """\
sysfs /sys sysfs rw,nosuid 0 0
/dev/md0 / ext4 rw,relatime 0 0
nas:/models /raid/my\\040models nfs4 ro,vers=4.2 0 0
tmpfs /dev/shm tmpfs rw 0 0
juicefs:x /mnt/j fuse.juicefs rw 0 0
"""


def test_a_path_lies_on_its_longest_mount() -> None:
    found = storage.parse_mounts(section(MOUNTS))
    assert isinstance(found, Known)
    assert found.value.of("/raid/my models/K3") == Mount(
        "/raid/my models", "nfs4", "nas:/models", read_only=True
    )
    assert found.value.of("/raid/my modelsX") == Mount("/", "ext4", "/dev/md0")
    assert [m.path for m in found.value.mounts if m.is_network] == ["/raid/my models", "/mnt/j"]


def test_a_mount_over_another_counts() -> None:
    mounts = Mounts((Mount("/a", "ext4"), Mount("/a", "nfs")))
    assert mounts.of("/a/b") == Mount("/a", "nfs")


def test_space_is_told_per_folder() -> None:
    facts = ask(storage.disks_probe(("/", "/no such folder")))[Disks]
    assert isinstance(facts, Known)
    good, bad = facts.value.disks
    assert good.total_mib
    assert good.free_mib is not None
    assert (bad.total_mib, "No such file" in bad.trouble) == (None, True)


def test_a_disk_that_hangs_is_told_as_such() -> None:
    found = storage.parse_disks(section("disk\t/nfs\t124\t\n"))
    assert isinstance(found, Known)
    assert found.value.disks == (Disk("/nfs", trouble="no answer in 2 s"),)


MDSTAT = """\
Personalities : [raid1] [raid0]
md1 : active raid1 nvme1n1p2[1] nvme0n1p2[0](F)
      976630464 blocks super 1.2 [2/1] [_U]
      [==>..................]  recovery = 12.6% (37043392/292945152) finish=127.5min
md0 : active raid0 nvme2n1[0] nvme3n1[1]
      7501212672 blocks super 1.2 512k chunks
unused devices: <none>
"""


def test_a_degraded_array_is_told() -> None:
    found = storage.parse_mdstat(section(MDSTAT))
    assert isinstance(found, Known)
    assert found.value == Arrays((
        Array("md1", "raid1", True, 2, 1, "recovery"),
        Array("md0", "raid0"),
    ))  # fmt: skip


def test_reading_speed_is_bytes_over_seconds() -> None:
    said = "file\tm.safetensors\n1073741824 bytes (1.1 GB, 1.0 GiB) copied, 0.5 s, 2.1 GB/s\n"
    found = model.parse_speed(section(said))
    assert isinstance(found, Known)
    assert round(found.value.mb_s) == 2147


def test_the_disk_of_the_engine_is_found_in_text_and_format() -> None:
    row = "/dev/md0 1000000 500000 400000 56% /var/lib/docker"
    found = container.parse_disk(section(f"root\t/var/lib/docker\nFilesystem …\n{row}\n"))
    assert isinstance(found, Known)
    assert (found.value.path, found.value.free_mib) == ("/var/lib/docker", 390)
