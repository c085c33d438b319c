"""A bundle for a frontend in Kubernetes: a patch for its Deployment, as data.

The files come from a claim, from a folder of the node, or from the cluster itself (an init
container that unpacks ConfigMaps). Each way mounts them at the worker's own model path, read only.
The bundle's digest is an annotation of the pod, so that another bundle starts new pods.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..core.errors import UsageError
from ..core.words import shown

VOLUME = "bringup-bundle"
PARTS = "bringup-bundle-parts"
ANNOTATION = "bringup/bundle"

PART_BYTES = 700 * 1024
"""Bytes of archive in one ConfigMap, which may hold 1 MiB.

Source: https://kubernetes.io/docs/concepts/configuration/configmap/
"""

PARTS_LIMIT = 24
"""More than this does not belong into the cluster's own store."""

Manifest: TypeAlias = Mapping[str, Any]  # a Kubernetes object: YAML decides its shape


@dataclass(frozen=True, slots=True)
class Claim:
    """A PersistentVolumeClaim that holds the unpacked bundle, in a folder of it or at its top."""

    name: str
    sub_path: str = ""


@dataclass(frozen=True, slots=True)
class HostFolder:
    """A folder that every node has, such as a NAS mounted on each."""

    path: str


@dataclass(frozen=True, slots=True)
class InitContainer:
    """Unpack the bundle from ConfigMaps when a pod starts.

    The image needs sh, tar and sha256sum; the frontend's own has them, and is on the node already.
    """

    image: str


Volume: TypeAlias = Claim | HostFolder | InitContainer


@dataclass(frozen=True, slots=True)
class FrontendDeployment:
    """A frontend's Deployment and the container in it that runs `dynamo.frontend`."""

    name: str
    container: str
    namespace: str = "default"


@dataclass(frozen=True, slots=True)
class Patch:
    """What is applied: objects to be created first, then a strategic merge patch."""

    deployment: FrontendDeployment
    objects: tuple[Manifest, ...]
    patch: Manifest

    def commands(self, objects_file: str, patch_file: str) -> tuple[tuple[str, ...], ...]:
        """Return the kubectl commands that apply it, given the files that it was written to.

        Objects go by server-side apply: the client's own notes would not fit an annotation.
        """
        kubectl = ("kubectl", "--namespace", self.deployment.namespace)
        target = f"deployment/{self.deployment.name}"
        apply = (*kubectl, "apply", "--server-side", "--filename", objects_file)
        return (
            *((apply,) if self.objects else ()),
            (*kubectl, "patch", target, "--patch-file", patch_file),
            (*kubectl, "rollout", "status", target, "--timeout", "10m"),
        )


def make_patch(
    deployment: FrontendDeployment,
    volume: Volume,
    *,
    model_path: str,
    digest: str,
    archive: bytes,
    archive_sha256: str,
) -> Patch:
    """Return the patch that gives a frontend the bundle at the worker's model path.

    Raises UsageError when the bundle is too large to be kept in ConfigMaps.
    """
    if not model_path.startswith("/"):
        raise UsageError(f"cannot mount at {model_path!r}: give the worker's absolute model path")
    objects: tuple[Manifest, ...] = ()
    mount: dict[str, Any] = {"name": VOLUME, "mountPath": model_path, "readOnly": True}
    match volume:
        case Claim(name, sub_path):
            source = {"persistentVolumeClaim": {"claimName": name, "readOnly": True}}
            spec = _pod(deployment, [{"name": VOLUME, **source}], mount | _sub_path(sub_path))
        case HostFolder(path):
            source = {"hostPath": {"path": path, "type": "Directory"}}
            spec = _pod(deployment, [{"name": VOLUME, **source}], mount)
        case InitContainer(image):
            objects = tuple(_parts(deployment, archive, digest))
            spec = _unpacking(deployment, objects, mount, image, archive_sha256)
    template = {"metadata": {"annotations": {ANNOTATION: digest}}, "spec": spec}
    return Patch(deployment, objects, {"spec": {"template": template}})


def _pod(
    deployment: FrontendDeployment, volumes: list[dict[str, Any]], mount: Mapping[str, Any]
) -> dict[str, Any]:
    container = {"name": deployment.container, "volumeMounts": [mount]}
    return {"volumes": volumes, "containers": [container]}


def _sub_path(sub_path: str) -> dict[str, str]:
    return {"subPath": sub_path} if sub_path else {}


def _parts(deployment: FrontendDeployment, archive: bytes, digest: str) -> Iterator[Manifest]:
    """Yield the archive cut into ConfigMaps, named by its digest so that old pods keep theirs."""
    pieces = range(0, len(archive), PART_BYTES)
    if len(pieces) > PARTS_LIMIT:
        raise UsageError(
            f"cannot keep a bundle of {len(archive)} bytes in ConfigMaps: more than "
            f"{PARTS_LIMIT * PART_BYTES}",
            remedy="put it on a claim or on the nodes: --claim NAME, or --node-folder PATH",
        )
    short = digest.removeprefix("sha256:")[:12]
    for number, start in enumerate(pieces):
        part = base64.b64encode(archive[start : start + PART_BYTES]).decode()
        yield {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": f"{deployment.name}-bundle-{short}-{number}",
                "namespace": deployment.namespace,
                "labels": {"app.kubernetes.io/managed-by": "bringup"},
                "annotations": {ANNOTATION: digest},
            },
            "immutable": True,
            "binaryData": {f"part-{number:03}": part},
        }


_UNPACK = """
set -eu
cat /parts/part-* >/model/.bundle.tgz
echo "$1  /model/.bundle.tgz" | sha256sum -c -
tar -xzf /model/.bundle.tgz -C /model
rm /model/.bundle.tgz
"""


def _unpacking(
    deployment: FrontendDeployment,
    objects: tuple[Manifest, ...],
    mount: dict[str, Any],
    image: str,
    archive_sha256: str,
) -> dict[str, Any]:
    sources = [{"configMap": {"name": one["metadata"]["name"]}} for one in objects]
    volumes = [
        {"name": VOLUME, "emptyDir": {}},
        {"name": PARTS, "projected": {"sources": sources}},
    ]
    init = {
        "name": VOLUME,
        "image": image,
        "command": ["sh", "-c", _UNPACK, "unpack", archive_sha256],
        "volumeMounts": [
            {"name": PARTS, "mountPath": "/parts", "readOnly": True},
            {"name": VOLUME, "mountPath": "/model"},
        ],
    }
    return {**_pod(deployment, volumes, mount), "initContainers": [init]}


def shown_commands(patch: Patch, objects_file: str, patch_file: str) -> str:
    """Return the commands as people type them, a line each."""
    return "\n".join(shown(words) for words in patch.commands(objects_file, patch_file))
