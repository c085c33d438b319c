"""What a look tells of a model folder, and what follows from it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bringup.core.host import Host, Login
from bringup.core.reading import Absent, Unknown
from bringup.core.rules import judge
from bringup.core.script import Section
from bringup.edge.local import LocalRemote
from bringup.flow.weights import Place, look
from bringup.probes.model import ModelFolder
from bringup.rules import CHECKS
from bringup.weights.compare import difference, faults_of, total_fault, wanted
from bringup.weights.folder import Folder, Seat
from bringup.weights.look import parse_look
from tests.bundle.here import HereHost, busybox_tools
from tests.rules.situations import world

from .models import BITS, hub_snapshot, model, shard


def seen(path: Path, remote: LocalRemote | None = None) -> Folder:
    host = Host("here", Login("localhost"))
    return look(Place(host, str(path), remote or LocalRemote(host)))


def names(faults: object) -> list[str]:
    return [str(fault) for fault in faults]  # type: ignore[attr-defined]


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    return model(tmp_path / "K3")


def test_a_whole_model_has_no_fault_and_its_tensors_add_up(whole: Path) -> None:
    folder = seen(whole)
    assert faults_of(folder) == ()
    assert total_fault(folder) == ""
    assert len(folder.weights) == 3
    assert folder.tensor_bytes == sum(f.header.tensor_bytes for f in folder.weights if f.header)


@pytest.mark.parametrize("dtype", BITS)
def test_types_of_any_width_fill_their_places(tmp_path: Path, dtype: str) -> None:
    shard(tmp_path / "model.safetensors", dtype=dtype)
    assert faults_of(seen(tmp_path)) == ()


def test_busybox_sees_what_gnu_tools_see(whole: Path, tmp_path: Path) -> None:
    remote = HereHost(tools=busybox_tools(tmp_path / "tools"))
    there, here = seen(whole, remote), seen(whole)
    assert there.files == here.files
    assert there.tensor_bytes == here.tensor_bytes


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def _zero_header(path: Path) -> None:
    path.write_bytes(bytes(8) + path.read_bytes()[8:])


def _pointer(path: Path) -> None:
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12345\n")


def _shape(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b',8],"data', b',9],"data', 1))


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (_cut, "is 100 bytes short"),
        (_zero_header, "begins with a header without tensors"),
        (_pointer, "a git-lfs pointer or a stub"),
        (_shape, "gives 1 tensors other bytes than type and shape take"),
        (Path.unlink, "is missing"),
    ],
)
def test_a_broken_shard_is_named(whole: Path, harm: object, says: str) -> None:
    harm(whole / "model-00002-of-00003.safetensors")  # type: ignore[operator]
    (fault,) = faults_of(seen(whole))
    assert fault.name == "model-00002-of-00003.safetensors"
    assert says in fault.why


def test_absent_and_unknown_are_told_apart(tmp_path: Path) -> None:
    assert seen(tmp_path / "none").seat is Seat.ABSENT
    assert isinstance(parse_look(Section("weights", None, "seat\tabsent"), "/x"), Unknown)
    assert isinstance(parse_look(Section("weights", 0, "seat\tfolder\t/x"), "/x"), Unknown)


def test_a_hubs_cache_tells_revision_and_sums(whole: Path, tmp_path: Path) -> None:
    snapshot = hub_snapshot(tmp_path / "hub", whole, revision="c" * 40)
    folder = seen(snapshot)
    assert folder.revision == "c" * 40
    assert all(len(file.told) == 64 for file in folder.weights)
    assert faults_of(folder) == ()


def test_weights_that_no_index_names_are_left_out(whole: Path) -> None:
    shard(whole / "consolidated.safetensors")
    files, left = wanted(seen(whole))
    assert [file.name for file in left] == ["consolidated.safetensors"]
    assert len(files) == len(seen(whole).files) - 1


def twin(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "twin"))


def lacks(whole: Path, other: Path) -> dict[str, str]:
    source, target = seen(whole), seen(other)
    found = difference(wanted(source)[0], source, target)
    assert not found.refusal
    return {**{f.name: "missing" for f in found.missing}, **{f.name: w for f, w in found.wrong}}


def test_a_twin_lacks_nothing_and_its_own_files_are_its_own(whole: Path, tmp_path: Path) -> None:
    other = twin(whole, tmp_path)
    (other / "NOTES.txt").write_text("ours")
    assert lacks(whole, other) == {}
    found = difference(wanted(seen(whole))[0], seen(whole), seen(other))
    assert found.foreign == ("NOTES.txt",)


def test_one_shard_with_other_bytes_is_named_alone(whole: Path, tmp_path: Path) -> None:
    other = twin(whole, tmp_path)
    place = other / "model-00001-of-00003.safetensors"
    place.write_bytes(place.read_bytes()[:-9] + bytes(9))
    assert lacks(whole, other) == {place.name: "has other bytes"}


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda p: model(p, seed=9), "other weights of the same shape"),
        (lambda p: model(p, shards=4), "its index names weights that the source lacks"),
        (lambda p: (p / "config.json").write_text("{}"), "another model or revision"),
        (lambda p: (p / "tokenizer_config.json").write_text("{}"), "were edited"),
    ],
)
def test_another_model_is_never_mixed_in(
    whole: Path, tmp_path: Path, harm: object, says: str
) -> None:
    other = twin(whole, tmp_path)
    harm(other)  # type: ignore[operator]
    source, target = seen(whole), seen(other)
    files = wanted(source)[0]
    assert says in difference(files, source, target).refusal
    assert difference(files, source, target, replace=True).refusal == ""


def test_two_revisions_of_a_hub_are_told_apart_by_name(tmp_path: Path) -> None:
    one = hub_snapshot(tmp_path / "a", model(tmp_path / "m1"), revision="a" * 40)
    two = hub_snapshot(tmp_path / "b", model(tmp_path / "m2"), revision="b" * 40)
    source, target = seen(one), seen(two)
    assert "it holds revision bbbb" in difference(wanted(source)[0], source, target).refusal


def test_a_folder_above_a_model_is_no_model(whole: Path) -> None:
    (fault,) = faults_of(seen(whole.parent))
    assert "holds no weights; there is K3/model-00001-of-00003.safetensors below it" in fault.why


@pytest.mark.parametrize("finding", ["STO-01", "STO-04"])
def test_absent_weights_are_answered_by_the_exact_command(finding: str) -> None:
    of = world(pair=True, absent={ModelFolder: Absent("no such folder")})
    (found,) = [one for one in judge(CHECKS, of) if one.id == finding]
    assert found.remedy.endswith("bringup weights.sync --deployment k3 --host b300-04")
