"""The patch for a frontend in Kubernetes, merged by the real kubectl (no cluster needed)."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from bringup.bundle.kubernetes import (
    PARTS_LIMIT,
    Claim,
    FrontendDeployment,
    HostFolder,
    InitContainer,
    Volume,
    make_patch,
)
from bringup.core.errors import CommandFailed, UsageError
from bringup.edge.bundle_files import Opened
from bringup.flow.bundle_kubernetes import apply_patch, write_patch
from tests.dynamo.model import toy_model
from tests.needed import require

from .folders import bundle_of

MODEL_PATH = "/raid/models/Kimi-K3"
FRONTEND = FrontendDeployment("dynamo-frontend", "frontend", "dynamo")

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": FRONTEND.name, "namespace": FRONTEND.namespace},
    "spec": {
        "selector": {"matchLabels": {"app": "frontend"}},
        "template": {
            "metadata": {"labels": {"app": "frontend"}},
            "spec": {
                "volumes": [{"name": "home", "emptyDir": {}}],
                "containers": [
                    {
                        "name": "frontend",
                        "image": "registry.example/dynamo:1.3.0.post1",
                        "volumeMounts": [{"name": "home", "mountPath": "/home/dynamo"}],
                    },
                    {"name": "metrics", "image": "registry.example/metrics:1"},
                ],
            },
        },
    },
}


@pytest.fixture
def bundle(tmp_path: Path) -> Opened:
    model = toy_model(tmp_path / "model")
    (model / "large.txt").write_bytes(os.urandom(1_000_000))
    return bundle_of(model, tmp_path / "b.tgz")


def merged(bundle: Opened, volume: Volume, tmp_path: Path) -> dict[str, Any]:
    """Return the pod's spec after kubectl merged the written patch into the Deployment."""
    written = write_patch(bundle, FRONTEND, volume, model_path=MODEL_PATH, folder=tmp_path / "k")
    target = tmp_path / "deployment.yml"
    target.write_text(yaml.safe_dump(DEPLOYMENT))
    patch = Path(written.patch_file).read_text()
    require("kubectl")
    words = ["kubectl", "patch", "--local", "-f", str(target), "--patch", patch, "-o", "json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    template = json.loads(done.stdout)["spec"]["template"]
    assert template["metadata"]["annotations"]["bringup/bundle"] == bundle.manifest.digest
    spec: dict[str, Any] = template["spec"]
    return spec


def mounts(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    frontend = next(one for one in spec["containers"] if one["name"] == "frontend")
    return {mount["mountPath"]: mount for mount in frontend["volumeMounts"]}


def test_claim_is_mounted_at_the_worker_s_path_beside_what_was_there(
    bundle: Opened, tmp_path: Path
) -> None:
    spec = merged(bundle, Claim("models", ".k3sync/Kimi-K3"), tmp_path)
    mount = mounts(spec)[MODEL_PATH]
    assert (mount["subPath"], mount["readOnly"]) == (".k3sync/Kimi-K3", True)
    assert "/home/dynamo" in mounts(spec)
    assert {volume["name"] for volume in spec["volumes"]} == {"home", "bringup-bundle"}
    assert [one["name"] for one in spec["containers"]] == ["frontend", "metrics"]


def test_node_folder_has_to_exist(bundle: Opened, tmp_path: Path) -> None:
    spec = merged(bundle, HostFolder("/mnt/nas/Kimi-K3"), tmp_path)
    volume = next(one for one in spec["volumes"] if one["name"] == "bringup-bundle")
    assert volume["hostPath"] == {"path": "/mnt/nas/Kimi-K3", "type": "Directory"}


def test_init_container_unpacks_the_very_bundle(bundle: Opened, tmp_path: Path) -> None:
    spec = merged(bundle, InitContainer("registry.example/dynamo:1.3.0.post1"), tmp_path)
    (init,) = spec["initContainers"]
    parts, model = tmp_path / "parts", tmp_path / "unpacked"
    parts.mkdir()
    model.mkdir()
    documents = yaml.safe_load_all((tmp_path / "k/dynamo-frontend-bundle-parts.yml").read_text())
    for document in documents:
        for name, data in document["binaryData"].items():
            (parts / name).write_bytes(base64.b64decode(data))
    here = {"/parts/": f"{parts}/", "/model": str(model)}
    words = list(init["command"])
    for there, path in here.items():
        words[2] = words[2].replace(there, path)
    subprocess.run(words, check=True, capture_output=True)
    names = {path.name for path in model.iterdir()} - {".bringup-bundle.json"}
    assert names == set(bundle.files)
    assert len(list(parts.iterdir())) == 2


def test_bundle_too_large_for_the_cluster_s_store_is_refused() -> None:
    with pytest.raises(UsageError, match="ConfigMaps"):
        make_patch(
            FRONTEND,
            InitContainer("x"),
            model_path=MODEL_PATH,
            digest="sha256:0",
            archive=bytes(PARTS_LIMIT * 700 * 1024 + 1),
            archive_sha256="0",
        )


def test_relative_model_path_is_refused(bundle: Opened, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="absolute"):
        write_patch(bundle, FRONTEND, Claim("models"), model_path="K3", folder=tmp_path)


def standing_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> Path:
    """Put a program that notes its words in kubectl's place: there is no cluster here."""
    noted = tmp_path / "noted"
    program = tmp_path / "bin/kubectl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >>{noted}\necho "no rights" >&2\nexit {code}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return noted


def test_applied_only_when_asked_and_in_order(
    bundle: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = standing_in(tmp_path, monkeypatch, 0)
    written = write_patch(
        bundle, FRONTEND, InitContainer("x"), model_path=MODEL_PATH, folder=tmp_path / "k"
    )
    assert not noted.exists()
    apply_patch(written)
    verbs = [line.split()[2] for line in noted.read_text().splitlines()]
    assert verbs == ["apply", "patch", "rollout"]
    assert written.commands.splitlines()[1].startswith("kubectl --namespace dynamo patch")


def test_refusal_of_kubectl_is_handed_on(
    bundle: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    standing_in(tmp_path, monkeypatch, 1)
    written = write_patch(
        bundle, FRONTEND, Claim("models"), model_path=MODEL_PATH, folder=tmp_path / "k"
    )
    with pytest.raises(CommandFailed) as error:
        apply_patch(written)
    assert "no rights" in error.value.said
    assert "patch deployment/dynamo-frontend" in error.value.ran


def test_missing_kubectl_leaves_the_command_to_the_operator(
    bundle: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("kubectl")
    written = write_patch(
        bundle, FRONTEND, Claim("models"), model_path=MODEL_PATH, folder=tmp_path / "k"
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="cannot find kubectl") as error:
        apply_patch(written)
    assert "kubectl --namespace dynamo patch" in error.value.remedy
