"""Docker on a practice host, as the data files of its stand-in: engine, images, containers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .hardware import Hardware, invented
from .software import Container, ContainerImage, Docker
from .tree import Entry, File, Folder, Tree

DATA = "/usr/lib/lab/docker"


def files(hardware: Hardware) -> Tree:
    """Return Docker's data, its configuration and the CDI file; nothing without Docker."""
    return dict(_entries(hardware, hardware.docker)) if hardware.docker else {}


def _entries(hardware: Hardware, docker: Docker) -> Iterator[tuple[str, Entry]]:
    info = _info(hardware, docker)
    yield f"{DATA}/info", File(paths(info))
    yield f"{DATA}/info.txt", File(_info_text(hardware, docker, info))
    yield f"{DATA}/version", File(paths(_version(docker)))
    yield f"{DATA}/image", Folder()
    yield f"{DATA}/container", Folder()
    for image in docker.images:
        yield f"{DATA}/image/{image_id(image)[7:]}", File(paths(_image(image)))
    for container in docker.containers:
        yield (
            f"{DATA}/container/{container_id(container)}",
            File(paths(_container(container, docker))),
        )
    yield "/etc/docker/daemon.json", File(_daemon(docker))
    yield "/var/lib/docker", Folder(0o710)
    yield "/run/docker.pid", File("1842")
    yield "/proc/1842/limits", File(_LIMITS)
    yield "/proc/1842/stat", File("1842 (dockerd) S 1 1842 1842 0 -1 4194560\n")
    if docker.cdi:
        yield "/var/run/cdi/nvidia.yaml", File(_cdi(hardware, docker.cdi))


_LIMITS = (
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max processes             unlimited            unlimited            processes \n"
    "Max open files            1048576              1048576              files     \n"
    "Max locked memory         8388608              8388608              bytes     \n"
)


def paths(value: object, at: str = "") -> str:
    """Return every path of a document, one a line: path, its JSON, and its plain text, by tabs.

    This is all that the stand-in needs to answer ``--format '{{json .A.B}}'`` and ``'{{.A.B}}'``.
    """
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    lines = [f"{at or '.'}\t{text}\t{_plain(value)}\n"]
    if isinstance(value, Mapping):
        lines += [paths(item, f"{at}.{key}") for key, item in value.items()]
    return "".join(lines)


def _plain(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case None:
            return "<no value>"
        case list():
            return "[" + " ".join(map(_plain, value)) + "]"
        case Mapping():
            return "map[" + " ".join(f"{k}:{_plain(v)}" for k, v in sorted(value.items())) + "]"
    return str(value)


def image_id(image: ContainerImage) -> str:
    """Return the image's ID: its configuration's sum, the same on every host that holds it."""
    return "sha256:" + invented("image", image.reference, sorted(image.labels.items()))


def container_id(container: Container) -> str:
    """Return the 64 digits of a container's ID."""
    return invented("container", container.name, container.image)


def _info(hardware: Hardware, docker: Docker) -> dict[str, Any]:
    runtimes = {"io.containerd.runc.v2": {"path": "runc"}, "runc": {"path": "runc"}}
    if docker.nvidia_runtime:
        runtimes["nvidia"] = {"path": "nvidia-container-runtime"}
    devices = [f"nvidia.com/gpu={index}" for index in range(len(hardware.slots))]
    found = [*devices, "nvidia.com/gpu=all"] if docker.cdi else []
    running = sum(container.status == "running" for container in docker.containers)
    return {
        "ID": invented(hardware.name, "docker")[:32],
        "Containers": len(docker.containers), "ContainersRunning": running,
        "ContainersPaused": 0, "ContainersStopped": len(docker.containers) - running,
        "Images": len(docker.images), "Driver": "overlay2",
        "LoggingDriver": "json-file", "CgroupDriver": docker.cgroup_driver, "CgroupVersion": "2",
        "KernelVersion": hardware.os.kernel, "OperatingSystem": hardware.os.name,
        "OSType": "linux", "Architecture": "x86_64", "NCPU": hardware.cpu.count,
        "MemTotal": hardware.memory_gib << 30, "DockerRootDir": "/var/lib/docker",
        "Name": hardware.name, "ServerVersion": docker.version, "Runtimes": runtimes,
        "DefaultRuntime": "runc", "Swarm": {"LocalNodeState": "inactive"},
        "SecurityOptions": ["name=apparmor", "name=seccomp,profile=builtin", "name=cgroupns"],
        "CDISpecDirs": ["/etc/cdi", "/var/run/cdi"],
        "DiscoveredDevices": [{"Source": "cdi", "ID": name} for name in found], "Warnings": None,
        "ClientInfo": {"Version": docker.version, "Context": "default", "Debug": False},
    }  # fmt: skip


def _info_text(hardware: Hardware, docker: Docker, info: Mapping[str, Any]) -> str:
    """Return `docker info` as people read it."""
    devices = [f"  cdi: {device['ID']}" for device in info["DiscoveredDevices"]]
    lines = [
        "Client: Docker Engine - Community", f" Version:    {docker.version}",
        " Context:    default", " Debug Mode: false", "", "Server:",
        f" Containers: {info['Containers']}", f"  Running: {info['ContainersRunning']}",
        "  Paused: 0", f"  Stopped: {info['ContainersStopped']}", f" Images: {info['Images']}",
        f" Server Version: {docker.version}", " Storage Driver: overlay2",
        " Logging Driver: json-file", f" Cgroup Driver: {docker.cgroup_driver}",
        " Cgroup Version: 2", " CDI spec directories:", "  /etc/cdi", "  /var/run/cdi",
        *([" Discovered Devices:", *devices] if devices else []),
        " Swarm: inactive", f" Runtimes: {' '.join(sorted(info['Runtimes']))}",
        " Default Runtime: runc", " Security Options:", "  apparmor", "  seccomp",
        "   Profile: builtin", "  cgroupns", f" Kernel Version: {hardware.os.kernel}",
        f" Operating System: {hardware.os.name}", " OSType: linux", " Architecture: x86_64",
        f" CPUs: {hardware.cpu.count}", f" Total Memory: {hardware.memory_gib / 1024:.3f}TiB",
        f" Name: {hardware.name}", " Docker Root Dir: /var/lib/docker", " Debug Mode: false",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _version(docker: Docker) -> dict[str, Any]:
    part = {"Version": docker.version, "ApiVersion": "1.51", "Os": "linux", "Arch": "amd64"}
    return {"Client": part, "Server": part}


def _image(image: ContainerImage) -> dict[str, Any]:
    layers = [f"sha256:{invented('layer', image.reference, number)}" for number in range(12)]
    return {
        "Id": image_id(image), "RepoTags": [image.reference], "RepoDigests": [],
        "Created": "2026-01-05T10:00:00Z", "Architecture": "amd64", "Os": "linux",
        "Size": int(image.gib * (1 << 30)),
        "Config": {"Labels": dict(image.labels) or None, "Entrypoint": None, "Cmd": ["bash"]},
        "RootFS": {"Type": "layers", "Layers": layers},
    }  # fmt: skip


def _container(container: Container, docker: Docker) -> dict[str, Any]:
    held = {image.reference: image_id(image) for image in docker.images}
    request = {
        "Driver": "",
        "Count": -1,
        "DeviceIDs": None,
        "Capabilities": [["gpu"]],
        "Options": {},
    }
    return {
        "Id": container_id(container), "Name": f"/{container.name}",
        "Image": held.get(container.image, f"sha256:{invented(container.image)}"),
        "State": {
            "Status": container.status, "Running": container.status == "running",
            "Pid": 4242 if container.status == "running" else 0, "ExitCode": 0,
        },
        "Config": {"Image": container.image, "Labels": dict(container.labels)},
        "HostConfig": {
            "NetworkMode": "host", "IpcMode": "host", "Privileged": container.privileged,
            "Devices": [], "CapAdd": None, "Ulimits": [], "ShmSize": 67108864, "Runtime": "runc",
            "DeviceRequests": [request] if container.gpus else None, "Binds": None,
        },
    }  # fmt: skip


def _daemon(docker: Docker) -> str:
    runtime = {"runtimes": {"nvidia": {"args": [], "path": "nvidia-container-runtime"}}}
    logs = {"log-driver": "json-file", "log-opts": {"max-size": "100m", "max-file": "3"}}
    return json.dumps(logs | (runtime if docker.nvidia_runtime else {}), indent=4) + "\n"


def _cdi(hardware: Hardware, driver: str) -> str:
    """Return the CDI file that `nvidia-ctk cdi generate` would have written for a driver."""
    names = [*map(str, range(len(hardware.slots))), "all"]
    devices = "".join(
        f'  - name: "{name}"\n    containerEdits:\n      deviceNodes:\n'
        f"        - path: /dev/nvidia{name if name != 'all' else 0}\n"
        for name in names
    )
    library = f"/usr/lib/x86_64-linux-gnu/libcuda.so.{driver}"
    return (
        f"---\ncdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n{devices}containerEdits:\n"
        f"  mounts:\n    - hostPath: {library}\n      containerPath: {library}\n"
    )
