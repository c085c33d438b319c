"""An empty model list, made for real in every known way, and what the doctor says of each.

One prefill and decode pair stays up; its folder is altered after it has registered, and a frontend
with an empty cache is started on each alteration: seconds a row.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from bringup.bundle.doctor import causes
from bringup.bundle.evidence import Evidence
from bringup.bundle.frontend_log import attempts
from bringup.bundle.match import Sums
from bringup.bundle.reports import PushOutcome
from bringup.core.reading import Known
from bringup.core.rules import Finding
from bringup.edge.bundle_files import open_archive
from bringup.flow.bundle import check_cards, make, read_here
from bringup.flow.bundle_doctor import Frontend as Settings
from bringup.flow.bundle_doctor import examine, gather, look_here
from bringup.flow.bundle_push import push
from tests.dynamo.environment import VERSION
from tests.dynamo.fixtures import MakeLoopback
from tests.dynamo.loopback import Frontend, Loopback
from tests.dynamo.model import toy_kimi, toy_model
from tests.dynamo.processes import until

from .here import target

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("dynamo-doctor")]

NAME = "toy"

FILES = (
    *("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"),
    "chat_template.jinja",
)


@dataclass(frozen=True, slots=True)
class Pair:
    """A registered pair, its model folder, and the folder as it was when they registered."""

    dynamo: Loopback
    model: Path
    pristine: Path

    @contextmanager
    def altered(self, alter: Callable[[Path], object]) -> Iterator[None]:
        """Alter the folder for a while."""
        alter(self.model)
        try:
            yield
        finally:
            shutil.rmtree(self.model, ignore_errors=True)
            shutil.copytree(self.pristine, self.model)


@pytest.fixture(scope="module")
def pair(shared_loopback: Loopback) -> Pair:
    model = toy_model(shared_loopback.folder / "models" / NAME)
    pristine = shutil.copytree(model, shared_loopback.folder / "pristine")
    shared_loopback.pair(model, NAME)
    return Pair(shared_loopback, model, pristine)


def look_into(
    dynamo: Loopback, frontend: Frontend, name: str, *, model_path: str = "", namespace: str = ""
) -> Evidence:
    settings = Settings(
        frontend.url, version=VERSION, model_path=model_path, namespace=Known(namespace)
    )
    return gather(
        name, settings, announced=dynamo.announced, look=look_here, log=lambda: frontend.program.log
    )  # fmt: skip


def named(findings: tuple[Finding, ...]) -> set[str]:
    return {finding.id.removeprefix("doctor-") for finding in causes(findings)}


def diagnosis(
    dynamo: Loopback, frontend: Frontend, name: str = NAME, *, tries: int = 2, **more: str
) -> tuple[Finding, ...]:
    """Wait until the frontend has tried each worker's card, then examine."""
    frontend.program.wait_for(
        lambda: sum(one.model == name for one in attempts(frontend.program.log)) >= tries,
        f"{tries} attempts at {name}",
    )
    return examine(look_into(dynamo, frontend, name, **more))


@contextmanager
def frontend_of(pair: Pair, *args: str, **more: object) -> Iterator[Frontend]:
    frontend = pair.dynamo.frontend(*args, **more)  # type: ignore[arg-type]
    try:
        yield frontend
    finally:
        frontend.program.kill()


def remove(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def lengthen(folder: Path) -> None:
    with (folder / "tokenizer_config.json").open("ab") as file:
        file.write(b"\n")


def scramble(folder: Path) -> None:
    path = folder / "generation_config.json"
    path.write_bytes(path.read_bytes().replace(b"1", b"2"))


def shorten(folder: Path) -> None:
    path = folder / "chat_template.jinja"
    path.write_bytes(path.read_bytes()[:-1])


ALTERATIONS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no folder": (shutil.rmtree, "missing-file"),
    "an empty folder": (empty, "missing-file"),
    **{f"no {name}": (remove(name), "missing-file") for name in FILES},
    "a longer file": (lengthen, "longer-file"),
    "other bytes": (scramble, "other-bytes"),
    "a shorter file": (shorten, "other-bytes"),
}


@pytest.mark.parametrize("case", ALTERATIONS)
def test_empty_list_is_traced_to_the_file(pair: Pair, case: str) -> None:
    alter, cause = ALTERATIONS[case]
    with pair.altered(alter), frontend_of(pair) as frontend:
        findings = diagnosis(pair.dynamo, frontend)
        assert frontend.get("/v1/models").body == b'{"object":"list","data":[]}'
        assert frontend.chat(NAME).status == 404
        assert named(findings) == {cause}
        (finding,) = causes(findings)
        assert str(pair.model) in finding.remedy
        assert "restart the frontend, or all workers" in finding.remedy
        assert "tries only once" in finding.remedy


def test_log_alone_tells_the_file_where_the_folder_cannot_be_seen(pair: Pair) -> None:
    with pair.altered(shutil.rmtree), frontend_of(pair) as frontend:
        diagnosis(pair.dynamo, frontend)
        blind = gather(
            NAME,
            Settings(frontend.url),
            announced=pair.dynamo.announced,
            look=_blind,
            log=lambda: frontend.program.log,
        )
    assert named(examine(blind)) == {"missing-file"}


def _blind(folder: str, names: frozenset[str]) -> dict[str, Sums]:
    raise PermissionError(13, "Permission denied", folder)


def test_identical_files_are_listed_and_nothing_is_wrong(pair: Pair) -> None:
    with frontend_of(pair) as frontend:
        frontend.lists(NAME)
        assert named(diagnosis(pair.dynamo, frontend)) == set()
        assert frontend.chat(NAME).status == 200


def test_bundle_elsewhere_does_under_model_path(pair: Pair, tmp_path: Path) -> None:
    elsewhere = shutil.copytree(pair.pristine, tmp_path / "elsewhere")
    arguments = ("--model-path", str(elsewhere))
    with pair.altered(shutil.rmtree), frontend_of(pair, *arguments) as frontend:
        frontend.lists(NAME)
        findings = diagnosis(pair.dynamo, frontend, model_path=str(elsewhere))
    assert named(findings) == set()


def test_wrong_file_at_the_worker_s_path_outweighs_model_path(pair: Pair, tmp_path: Path) -> None:
    elsewhere = shutil.copytree(pair.pristine, tmp_path / "elsewhere")
    arguments = ("--model-path", str(elsewhere))
    with pair.altered(scramble), frontend_of(pair, *arguments) as frontend:
        findings = diagnosis(pair.dynamo, frontend, model_path=str(elsewhere))
    assert named(findings) == {"other-bytes"}


def test_model_path_without_config_ends_the_frontend_at_start(pair: Pair, tmp_path: Path) -> None:
    elsewhere = shutil.copytree(pair.pristine, tmp_path / "elsewhere")
    (elsewhere / "config.json").unlink()
    with frontend_of(pair, "--model-path", str(elsewhere)) as frontend:
        assert not frontend.program.runs
        assert "unable to extract config.json" in frontend.program.log


def test_files_mended_after_the_only_try_need_a_restart_and_nothing_else(pair: Pair) -> None:
    with pair.altered(remove("tokenizer.json")):
        frontend = pair.dynamo.frontend()
        diagnosis(pair.dynamo, frontend)
    findings = diagnosis(pair.dynamo, frontend)
    frontend.program.kill()
    assert named(findings) == {"not-retried"}
    with frontend_of(pair, home=frontend.home) as again:
        again.lists(NAME)


def test_unusable_cache_is_named(pair: Pair, tmp_path: Path) -> None:
    (tmp_path / ".cache").write_text("not a folder")
    with frontend_of(pair, home=tmp_path) as frontend:
        findings = diagnosis(pair.dynamo, frontend)
    assert named(findings) == {"cache"}
    assert "HOME" in causes(findings)[0].remedy


def test_warm_cache_masks_altered_bytes_and_the_doctor_warns(pair: Pair, tmp_path: Path) -> None:
    with frontend_of(pair, home=tmp_path) as frontend:
        frontend.lists(NAME)
    with pair.altered(scramble), frontend_of(pair, home=tmp_path) as frontend:
        frontend.lists(NAME)
        findings = diagnosis(pair.dynamo, frontend)
    assert named(findings) == {"masked"}


def test_address_as_response_interface_is_named(pair: Pair) -> None:
    address = {"DYN_TCP_RESPONSE_STREAM_HOST": "127.0.0.1"}
    with frontend_of(pair, env=address) as frontend:
        findings = diagnosis(pair.dynamo, frontend)
    assert named(findings) == {"interface"}


def test_frontend_in_another_namespace_is_told_by_its_flag_and_by_its_silence(pair: Pair) -> None:
    model = toy_model(pair.dynamo.folder / "models" / "elsewhere")
    worker = pair.dynamo.worker(model, "elsewhere", namespace="other")
    with frontend_of(pair, namespace="other") as frontend:
        frontend.lists("elsewhere")  # so it has looked at discovery
        by_flag = look_into(pair.dynamo, frontend, NAME, namespace="other")
        silent = gather(
            NAME,
            Settings(frontend.url),
            announced=pair.dynamo.announced,
            look=look_here,
            log=lambda: frontend.program.log,
        )
    worker.stop()
    assert named(examine(by_flag)) == {"namespace"}
    assert named(examine(silent)) == {"namespace"}


def test_unannounced_name_is_told_with_the_names_that_are(pair: Pair) -> None:
    with frontend_of(pair) as frontend:
        frontend.lists(NAME)
        findings = examine(look_into(pair.dynamo, frontend, "tyo"))
    assert named(findings) == {"announced"}
    assert "announced: toy" in causes(findings)[0].evidence[0]


def spoiled(folder: Path, spoil: Callable[[Path], object]) -> Path:
    toy_model(folder)
    spoil(folder)
    return folder


def drop_end_of_sequence(folder: Path) -> None:
    (folder / "generation_config.json").unlink()
    config = json.loads((folder / "config.json").read_text())
    del config["eos_token_id"]
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')


VARIANTS: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "no-tokenizer": (lambda folder: spoiled(folder, remove("tokenizer.json")), {"no-tokenizer"}),
    "no-tokenizer-config": (
        lambda folder: spoiled(folder, remove("tokenizer_config.json")),
        {"no-tokenizer-config"},
    ),
    "no-template": (
        lambda folder: spoiled(folder, remove("chat_template.jinja")),
        {"no-template"},
    ),
    "no-generation-config": (
        lambda folder: spoiled(folder, remove("generation_config.json")),
        set(),
    ),
    "no-end": (lambda folder: spoiled(folder, drop_end_of_sequence), {"no-end"}),
    "kimi-k3": (toy_kimi, {"tokenizer-type"}),
    "kimi-k25": (lambda folder: toy_kimi(folder, model_type="kimi_k25"), {"no-template"}),
}


@dataclass(frozen=True, slots=True)
class Variants:
    """Workers with a folder each that lacks something, under one frontend that sees them all."""

    dynamo: Loopback
    frontend: Frontend


@pytest.fixture(scope="module")
def variants(dynamo_env: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Variants]:
    with Loopback(tmp_path_factory.mktemp("variants"), dynamo_env, discovery="file") as dynamo:
        started = []
        for name, (write, _) in VARIANTS.items():
            model = dynamo.folder / "models" / name
            write(model)
            started.append((dynamo.worker(model, name, wait=False, namespace=name), model, name))
        for worker, model, name in started:
            worker.says(f"registered {model} as {name}")
        yield Variants(dynamo, dynamo.frontend())


@pytest.mark.parametrize("variant", VARIANTS)
def test_worker_s_own_folder_lacking_something_is_named(variants: Variants, variant: str) -> None:
    wanted = VARIANTS[variant][1]
    findings = diagnosis(variants.dynamo, variants.frontend, variant, tries=1)
    assert named(findings) == wanted
    assert (variant in variants.frontend.models()) == (not wanted)
    for finding in causes(findings):
        assert "restart every worker" in finding.remedy


def test_kimi_k3_on_1_3_is_told_its_three_ways_out(variants: Variants) -> None:
    findings = diagnosis(variants.dynamo, variants.frontend, "kimi-k3", tries=1)
    remedy = causes(findings)[0].remedy
    assert "Dynamo 1.5.0 or newer" in remedy
    assert "--dyn-chat-processor sglang" in remedy
    assert "tokenizer.json" in remedy


def test_worker_without_config_dies_and_announces_nothing(loopback: MakeLoopback) -> None:
    dynamo = loopback(discovery="file")
    model = spoiled(dynamo.folder / "models" / NAME, remove("config.json"))
    worker = dynamo.worker(model, NAME, wait=False)
    until(lambda: not worker.runs, "the worker has ended")
    frontend = dynamo.frontend()
    assert "unable to extract config.json" in worker.log
    assert named(examine(look_into(dynamo, frontend, NAME))) == {"announced"}


@pytest.mark.parametrize(("present", "lacking"), [("prefill", "decode"), ("decode", "prefill")])
def test_one_role_alone_is_told_with_the_one_that_lacks(
    loopback: MakeLoopback, present: str, lacking: str
) -> None:
    dynamo = loopback(discovery="file")
    dynamo.worker(toy_model(dynamo.folder / "models" / NAME), NAME, present)  # type: ignore[arg-type]
    findings = diagnosis(dynamo, dynamo.frontend(), tries=1)
    assert named(findings) == {"roles"}
    assert causes(findings)[0].evidence[0] == f"no {lacking} worker for {NAME}"
    assert any(f"missing {lacking}" in line for line in causes(findings)[0].evidence)


def test_roles_under_different_names_and_namespaces_are_told_apart(
    loopback: MakeLoopback,
) -> None:
    dynamo = loopback(discovery="file")
    model = toy_model(dynamo.folder / "models" / NAME)
    dynamo.worker(model, "one", "prefill", namespace="a")
    dynamo.worker(model, "two", "decode", namespace="a")
    dynamo.worker(model, "three", "prefill", namespace="b")
    dynamo.worker(model, "three", "decode", namespace="c")
    frontend = dynamo.frontend()
    by_name = diagnosis(dynamo, frontend, "one", tries=1)
    by_namespace = diagnosis(dynamo, frontend, "three")
    assert named(by_name) == named(by_namespace) == {"roles"}
    assert any("two: decode in namespace a" in line for line in causes(by_name)[0].evidence)
    assert any("different namespaces: b, c" in line for line in causes(by_namespace)[0].evidence)


@pytest.mark.parametrize("who", ["the frontend", "both workers"])
def test_push_and_the_named_restart_bring_the_model_back(
    loopback: MakeLoopback, tmp_path: Path, who: str
) -> None:
    """The K3 report's wall, from the empty list to a chat completion."""
    dynamo = loopback(discovery="etcd")
    model = toy_model(dynamo.folder / "models" / NAME)
    workers = dynamo.pair(model, NAME)
    report = make(read_here(model), tmp_path / "bundle.tgz", dynamo=VERSION)
    bundle = open_archive(Path(report.path))
    assert check_cards(bundle, dynamo.announced().cards, name=NAME).is_good
    shutil.rmtree(model)  # the frontend's host has no such folder
    frontend = dynamo.frontend()
    findings = diagnosis(dynamo, frontend)
    assert named(findings) == {"missing-file"}
    assert "the frontend, or all workers" in causes(findings)[0].remedy

    (placed,) = push(bundle, [target(model)])
    assert placed.outcome is PushOutcome.CHANGED
    if who == "the frontend":
        frontend.program.stop()
        frontend = dynamo.frontend(home=frontend.home)
    else:
        for worker in workers:
            worker.stop()
        dynamo.pair(model, NAME)
    frontend.lists(NAME)
    answer = frontend.chat(NAME)
    assert answer.status == 200, answer.text
    assert json.loads(answer.body)["choices"][0]["message"]["content"]


def test_restart_of_one_worker_alone_does_not_mend_it(
    loopback: MakeLoopback, tmp_path: Path
) -> None:
    """Why the doctor says all workers."""
    dynamo = loopback(discovery="file")
    model = toy_model(dynamo.folder / "models" / NAME)
    _, decode = dynamo.pair(model, NAME)
    away = model.rename(tmp_path / "away")
    frontend = dynamo.frontend()
    diagnosis(dynamo, frontend)
    away.rename(model)
    decode.stop()
    dynamo.worker(model, NAME, "decode")
    frontend.program.wait_for(
        lambda: sum(one.model == NAME for one in attempts(frontend.program.log)) >= 3,
        "the third attempt",
    )
    assert frontend.chat(NAME).status == 503
    assert frontend.models() == []
    findings = examine(look_into(dynamo, frontend, NAME))
    assert named(findings) == {"not-retried"}
    assert "all workers of toy together" in causes(findings)[0].remedy
