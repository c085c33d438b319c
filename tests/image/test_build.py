"""Builds of the K3 image by a real engine, on the real source of SGLang, gated and named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bringup.core.errors import Blocked, CommandFailed
from bringup.core.script import compose, split
from bringup.core.steps import Observation, State, observed
from bringup.edge.engine import Builder
from bringup.edge.pip import Index
from bringup.flow import image as flow_image
from bringup.flow.image_gate import GateFailed
from bringup.image.context import LABEL
from bringup.image.gate import GateStatus
from bringup.image.step import image_step

from .bench import LIGHT, REFERENCE, Bench, identity, image
from .dockerd import Dockerd
from .k3 import ARGS_FILE, CACHE_FILE, diff_entry, overlay_entry
from .wheels import make_wheel

pytestmark = [pytest.mark.slow, pytest.mark.root, pytest.mark.xdist_group("image")]


def patched(builder: Dockerd, reference: str) -> str:
    """Return the two patched files as they are in an image."""
    source = "/sgl-workspace/sglang/python/sglang/srt"
    words = ("cat", f"{source}/{CACHE_FILE}", f"{source}/server_args.py")
    return builder.docker("run", "--rm", reference, *words)


def test_k3_builds_on_the_real_source_and_passes_its_gate(bench: Bench, builder: Dockerd) -> None:
    assert bench.built.report is not None
    assert not bench.built.report.failed
    assert bench.built.image.labels[LABEL] == bench.folder.context.digest
    assert bench.built.image.labels["bringup.version.ai-dynamo"] == "1.3.0.post1"
    text = patched(builder, REFERENCE)
    assert "# patched\n" in text
    assert "# patched by a diff\n" in text


def test_classic_builder_does_the_same(bench: Bench, builder: Dockerd, tmp_path: Path) -> None:
    order = replace(bench.order, builder=Builder.CLASSIC)
    light = image(tmp_path, tag="classic", **LIGHT)
    built = flow_image.build(light, order)
    assert built.record is not None
    assert built.record.builder == "classic"
    assert "# patched\n" in patched(builder, built.reference)


def test_unchanged_inputs_build_nothing_and_say_why(bench: Bench) -> None:
    again = flow_image.build(bench.folder, bench.order)
    assert again.record is None
    assert again.why.startswith("same, because context sha256:")


def test_changed_patch_is_named_and_the_old_image_keeps_a_name(
    bench: Bench, builder: Dockerd, tmp_path: Path
) -> None:
    old = flow_image.build(image(tmp_path, tag="moves"), bench.order)
    folder = image(tmp_path, tag="moves", mark="# two")
    needed, why, different = flow_image.foresee(folder, bench.order.engine)
    assert (needed, why) == (True, "1 inputs changed")
    assert [change.name for change in different] == [f"patches/sglang/srt/{CACHE_FILE}"]
    new = flow_image.build(folder, bench.order)
    pairs = zip(old.image.layers, new.image.layers, strict=True)
    assert [one == other for one, other in pairs].index(False) >= 4  # base, programs, pins, wheels
    assert old.record is not None
    assert identity(builder, "dynamo-sglang-k3:moves") == new.image.id
    assert identity(builder, old.record.kept) == old.image.id


def test_record_holds_inputs_versions_and_gate(bench: Bench) -> None:
    record = bench.order.store.records("dynamo-sglang-k3")[-1]
    assert record == bench.built.record
    assert record.engine_version == "0.5.18"
    assert record.versions["torch"] == "none"
    assert {answer["check"] for answer in record.gate} >= {"imports_resolve", "patches_in_place"}
    assert Path(record.log).read_text()


def test_gate_step_for_gpus_is_not_run_rather_than_passed(bench: Bench) -> None:
    assert bench.built.report is not None
    assert {answer.check for answer in bench.built.report.not_run} == {"imports", "help_lists"}


MOVED = "a" * 64
Fault = tuple[dict[str, Any], type[Exception], tuple[str, ...]]
FAULTS: dict[str, Callable[[], Fault]] = {
    "overlay over a moved base": lambda: (
        {"patches": [overlay_entry(replaces={CACHE_FILE: MOVED})]},
        CommandFailed,
        ("the base moved", CACHE_FILE, MOVED, overlay_entry()["replaces"][CACHE_FILE]),
    ),
    "diff over a moved base": lambda: (
        {"patches": [diff_entry(replaces={ARGS_FILE: MOVED})]},
        CommandFailed,
        ("the base moved", ARGS_FILE, MOVED, diff_entry()["replaces"][ARGS_FILE]),
    ),
    "new file that is there": lambda: (
        {"patches": [overlay_entry(replaces={CACHE_FILE: "new"})]},
        CommandFailed,
        ("the base moved", CACHE_FILE, "there should be none"),
    ),
    "engine of another version": lambda: (
        {"engine": {"name": "sglang", "version": "0.5.17", "path": "/sgl-workspace/x"}},
        CommandFailed,
        ("its sglang is 0.5.18, image.yml says 0.5.17",),
    ),
    "engine elsewhere": lambda: (
        {"engine": {"name": "sglang", "version": "0.5.18", "path": "/sgl-workspace/x"}},
        GateFailed,
        ("not from /sgl-workspace/x",),
    ),
    "requirement that nothing meets": lambda: (
        {"gate": [{"check": "requirements_met", "allow": []}]},
        GateFailed,
        ("ai-dynamo 1.3.0.post1 requires aiohttp, which is not installed",),
    ),
    "import that leads nowhere": lambda: (
        {"gate": [{"check": "imports", "modules": ["dynamo.sglang.main"]}]},
        GateFailed,
        ("import dynamo.sglang.main ends with exit 1", "ModuleNotFoundError"),
    ),
    "flag that the help does not list": lambda: (
        {
            "gate": [
                {"check": "help_lists", "command": ["python3", "--help"], "flags": ["--dspark"]}
            ]
        },
        GateFailed,
        ("the help does not list --dspark",),
    ),
    "pin that does not exist": lambda: (
        {"packages": ["ai-dynamo[sglang]==1.3.0"], "no_deps": []},
        Blocked,
        ("1.3.0 does not exist", "sglang[diffusion]==0.5.14", "replaces sglang 0.5.18"),
    ),
    "package that displaces the engine": lambda: (
        {"packages": ["swap==1.0"], "no_deps": []},
        Blocked,
        ("sglang==0.5.18",),
    ),
    "pin of the engine itself": lambda: (
        {"packages": ["sglang==0.5.14"], "no_deps": ["sglang"]},
        Blocked,
        ("the pin itself replaces sglang 0.5.18",),
    ),
    "base that is not there": lambda: (
        {"base": {"reference": "localhost:1/nobody/has:it"}},
        CommandFailed,
        ("docker pull localhost:1/nobody/has:it",),
    ),
}


@pytest.mark.parametrize("case", FAULTS, ids=str)
def test_fault_is_clear_and_leaves_the_old_image_named(
    case: str, bench: Bench, builder: Dockerd, tmp_path: Path
) -> None:
    before = identity(builder)
    changed, kind, words = FAULTS[case]()
    with pytest.raises((CommandFailed, Blocked, GateFailed)) as raised:
        flow_image.build(image(tmp_path, **changed), bench.order)
    said = f"{raised.value.message} {raised.value.said} {raised.value.remedy}"
    assert type(raised.value) is kind, said
    assert all(word in said for word in words), said
    assert identity(builder) == before
    assert "building-" not in builder.docker("images", "--format", "{{.Tag}}")


def test_pin_that_gets_past_the_index_is_refused_inside(bench: Bench, tmp_path: Path) -> None:
    """Nothing is recorded of this base, so only the build itself can see what it holds."""
    pins = ["ai-dynamo==1.3.0.post1", "ai-dynamo-runtime==1.3.0.post1", "pip==1.0"]
    make_wheel(tmp_path / "more", "pip", "1.0")
    for wheel in (bench.order.index.wheels or tmp_path).iterdir():
        (tmp_path / "more" / wheel.name).symlink_to(wheel)
    order = replace(bench.order, index=Index(wheels=tmp_path / "more"))
    with pytest.raises(CommandFailed, match=r"cannot install pip==1\.0: the base has pip"):
        flow_image.build(image(tmp_path, packages=pins), order)


def test_changed_gate_is_asked_without_a_build(bench: Bench, tmp_path: Path) -> None:
    folder = image(tmp_path, gate=[{"check": "engine_unchanged"}])
    again = flow_image.build(folder, bench.order)
    assert again.record is None
    assert again.report is not None
    assert [answer.status for answer in again.report.answers] == [GateStatus.PASS]


def test_step_sees_the_image_by_id_and_context_and_tells_absent_from_unknown(
    bench: Bench, builder: Dockerd
) -> None:
    image_ = bench.built.image
    context = bench.folder.context.digest

    def seen(reference: str, engine: tuple[str, ...]) -> Observation:
        step = image_step(reference, identity=image_.id, context=context, engine=engine)
        said = builder.here.read(compose([step.ask], nonce="n"), seconds=60)
        return observed(step, split(said.stdout, nonce="n")[step.id])

    assert seen(bench.built.reference, builder.words).state is State.SAME
    assert seen("nobody:1", builder.words).found == "absent"
    assert seen("nobody:1", ("docker", "-H", "unix:///nowhere")).state is State.UNKNOWN
