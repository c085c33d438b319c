"""The bundle's verbs as an operator runs them: words in, an exit code and a document out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bringup.core.errors import Exit
from bringup.doors.cli import group
from tests.dynamo.etcd import Server, etcd_server
from tests.dynamo.model import toy_kimi, toy_model
from tests.dynamo.processes import free_ports
from tests.readiness.test_cards import HERE as CARDS

from .folders import safetensors


def run(*words: object) -> tuple[int, list[dict[str, Any]]]:
    """Run a verb with --json; return its exit code and all documents but progress."""
    result = CliRunner().invoke(group(), [*map(str, words), "--json"])
    documents = (json.loads(line) for line in result.stdout.splitlines() if line.startswith("{"))
    return result.exit_code, [d for d in documents if d.get("schema") != "bringup.event/1"]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    out = tmp_path / "k3.tgz"
    assert run("bundle.make", toy_model(tmp_path / "model"), "--out", out)[0] == Exit.DONE
    return out


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An etcd with the cards that a real 1.3 pair had announced."""
    with etcd_server(tmp_path_factory.mktemp("etcd")) as server:
        document = json.loads((CARDS / "discovery-1.3.0.post1.json").read_text())
        for key, value in document.items():
            server.client.put(key, json.dumps(value).encode())
        yield server


def test_made_bundle_is_told_with_its_manifest_and_readers(tmp_path: Path) -> None:
    code, (made,) = run("bundle.make", toy_kimi(tmp_path / "K3"), "--out", tmp_path / "b.tgz")
    assert code == Exit.DONE
    assert made["readers"]["1.6.0"] == []
    assert "bundle-tokenizer-type" in made["readers"]["1.3.0"]
    assert made["manifest"]["identity"]["model_type"] == "kimi_k3"


def test_folder_that_this_dynamo_cannot_serve_is_blocked(tmp_path: Path) -> None:
    words = ("bundle.make", toy_kimi(tmp_path / "K3"), "--out", tmp_path / "b.tgz")
    assert run(*words, "--dynamo", "1.3.0.post1")[0] == Exit.BLOCKED
    accepted = ("--accept", "bundle-tokenizer-type", "--accept", "bundle-template")
    assert run(*words, "--dynamo", "1.3.0.post1", *accepted)[0] == Exit.DONE


def test_push_goes_from_would_change_to_changed_to_same(bundle: Path, tmp_path: Path) -> None:
    words = ("bundle.push", bundle, "--to", tmp_path / "place")
    outcomes = [run(*words, "--check"), run(*words), run(*words)]
    assert [code for code, _ in outcomes] == [Exit.WOULD_CHANGE, Exit.DONE, Exit.DONE]
    told = [documents[0]["outcome"] for _, documents in outcomes]
    assert told == ["would change", "changed", "same"]


def test_push_over_weights_is_blocked(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    (tmp_path / "place/model.safetensors").write_bytes(safetensors())
    assert run("bundle.push", bundle, "--to", tmp_path / "place")[0] == Exit.BLOCKED


def test_check_compares_with_folders_and_loads(bundle: Path, tmp_path: Path) -> None:
    words = ("bundle.check", bundle, "--load", "--folder", tmp_path / "model")
    code, (loaded, checked) = run(*words)
    assert (code, loaded["loaded"]["kind"], checked["good"]) == (Exit.DONE, "tokenizers", True)
    (tmp_path / "model/config.json").write_text("{}")
    assert run(*words)[0] == Exit.FAILED


def test_check_compares_with_cards_in_etcd(bundle: Path, etcd: Server) -> None:
    words = ("bundle.check", bundle, "--etcd", etcd.url)
    code, (checked,) = run(*words, "--name", "kimi-k3-ultrafast")
    assert code == Exit.FAILED
    assert any(line.startswith("tokenizer.json") for line in checked["mismatches"])
    assert run(*words, "--name", "nobody")[0] == Exit.USAGE


def test_doctor_that_reaches_nobody_says_so_and_is_no_success() -> None:
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    code, (told,) = run("bundle.doctor", "--name", "toy", "--frontend", url, "--etcd", url)
    assert code == Exit.UNREACHABLE
    assert told["causes"] == []


def test_doctor_needs_to_know_whom_to_look_at() -> None:
    assert run("bundle.doctor")[0] == Exit.USAGE


def test_kubernetes_wants_one_way_and_writes_it(bundle: Path, tmp_path: Path) -> None:
    frontend = ("--frontend", "f", "--container", "main", "--model-path", "/raid/models/Kimi-K3")
    words = ("bundle.kubernetes", bundle, *frontend, "--out", tmp_path / "k")
    assert run(*words)[0] == Exit.USAGE
    assert run(*words, "--claim", "models", "--node-folder", "/x")[0] == Exit.USAGE
    assert run(*words, "--claim", "models")[0] == Exit.DONE
    assert (tmp_path / "k/f-bundle-patch.yml").exists()


@pytest.mark.parametrize("word", ["b300-04:relative/path", "nohost:/raid/K3"])
def test_folder_that_names_no_host_or_no_path_is_wrong_input(
    bundle: Path, tmp_path: Path, word: str
) -> None:
    assert run("bundle.push", bundle, "--to", word)[0] == Exit.USAGE
