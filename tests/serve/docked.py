"""A deployment in containers on hosts with a real docker each: a stand-in engine, real scripts."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from bringup.decide import Design
from bringup.flow.open import read_inventory, tools_for
from bringup.flow.provision import steps_of
from bringup.flow.serve import Wish, know
from bringup.options.hosts import Workspace
from tests.dynamo.processes import Program
from tests.fleet.yard import FleetHost, Yard

ROOT = Path(__file__).parents[2]
NAME = "toy"
TAG = "standin:1"

# The engine of the stand-in: says what it was given, loads, and stays until it is asked to end. Its
# frontend lives and lists the model.
ENGINE = """#!/bin/sh
trap 'exit 143' TERM
echo "server_args=ServerArgs($*)"
[ "$2" != dynamo.frontend ] || httpd -h /www -p "$4"
[ ! -f /model/say ] || cat /model/say
[ ! -f /model/exit ] || exit "$(cat /model/exit)"
while :; do
  [ ! -f /model/grow ] || exec tail -c 500000000 /dev/zero
  sleep 1 & wait $!
done
"""


def image_tar() -> bytes:
    """Return the root of an image: busybox, and an engine by the names that scripts call."""
    busybox = Path(shutil.which("busybox") or "/bin/busybox").read_bytes()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in (
            ("bin/busybox", busybox),
            ("bin/python3", ENGINE.encode()),
            *((path, Path(f"/{path}").read_bytes()) for path in real_files("/usr/bin/etcd")),
            ("bin/nats-server", Path(str(shutil.which("nats-server"))).read_bytes()),
            ("www/live", b"{}"),
            ("www/v1/models", json.dumps({"data": [{"id": NAME}]}).encode()),
        ):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o755
            tar.addfile(info, io.BytesIO(content))
        for applet in ("sh", "sleep", "cat", "echo", "httpd", "tail"):
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    return out.getvalue()


def real_files(program: str) -> list[str]:
    """Return a program of this machine with the libraries it needs, relative to the root."""
    told = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    found = [word for line in told.splitlines() for word in line.split() if word.startswith("/")]
    return [path.lstrip("/") for path in (program, *found)]


@dataclass
class Docked:
    """An inventory over hosts of a fleet, and the command line pointed at it."""

    folder: Path
    yard: Yard
    hosts: list[FleetHost]
    image: str  # its id
    roles: dict[str, dict[str, Any]] = field(default_factory=dict)
    knobs: dict[str, Any] = field(default_factory=dict)
    services: dict[str, Any] = field(default_factory=dict)
    in_container: bool = True
    is_pinned: bool = True  # whether the deployment names its image by digest
    begun: Program | None = None

    @property
    def inventory(self) -> Path:
        return self.folder / "inventory"

    def write(self, roles: Mapping[str, Mapping[str, Any]] | None = None, **knobs: Any) -> None:
        """Write the inventory, and the scripts that it wants on the hosts."""
        self.roles = {name: dict(role) for name, role in (roles or self.roles).items()}
        self.knobs |= knobs
        (self.inventory / "deployments").mkdir(parents=True, exist_ok=True)
        (self.inventory / "kinds").mkdir(exist_ok=True)
        hosts = {h.name: {"address": h.address, "user": "root", "key_file": str(h.key)}
                 for h in self.hosts}  # fmt: skip
        (self.inventory / "hosts.yml").write_text(yaml.safe_dump({"hosts": hosts}))
        path = self.inventory / f"deployments/{NAME}.yml"
        path.write_text(yaml.safe_dump(self._deployment(), sort_keys=False))
        self.write_scripts()

    def _deployment(self) -> dict[str, Any]:
        image = {"name": "standin", "reference": TAG, "engine_version": "0.5.18",
                 "dynamo_version": "1.3.0.post1"}  # fmt: skip
        image |= {"digest": self.image} if self.is_pinned else {}
        return {
            "engine": "dynamo.sglang",
            "model": {"served_name": NAME, "path": "/model"},
            "image": image,
            "accept_tcp": True,
            "in_container": self.in_container,
            "roles": self.roles,
            "services": self.services,
            "knobs": {"gpu_access": "none", "memlock": "65536", "shm": "64m", **self.knobs},
        }

    def write_scripts(self) -> None:
        """Write what `provision` would write; the hosts' lack of GPUs would stop it."""
        known = read_inventory(str(self.inventory))
        wish = Wish(known, known.deployments[NAME])
        workspace = Workspace(inventory=str(self.inventory), known_hosts=str(self.yard.known_hosts),
                        state=str(self.folder / "state"))  # fmt: skip
        with tools_for(known, workspace, lambda _: None) as tools:
            found = know(tools, wish)
            for part in found.parts.values():
                host = part.world.host
                for step in steps_of(tools, Design(host, (), (part,))):
                    tools.fleet.remote(host.name).write(step.actions)  # type: ignore[arg-type]

    def words(self, verb: str, *more: str) -> list[str]:
        """The command line of a verb, on this deployment."""
        words = [sys.executable, "-m", "bringup", verb, "--deployment", NAME]
        words += ["--inventory", str(self.inventory), "--state", str(self.folder / "state")]
        return [*words, "--known-hosts", str(self.yard.known_hosts), *more]

    def run(self, verb: str, *more: str, seconds: int = 600) -> subprocess.CompletedProcess[str]:
        """Run a verb to its end."""
        return subprocess.run(
            self.words(verb, *more), cwd=ROOT, capture_output=True, text=True, check=False,
            timeout=seconds,
        )  # fmt: skip

    def begin(self, verb: str, *more: str) -> Program:
        """Start a verb and let it run; it is killed before the next test."""
        log = self.folder / f"{verb}.out"
        log.unlink(missing_ok=True)
        words, env = self.words(verb, *more), dict(os.environ)
        self.begun = Program.start(verb, words, env=env, cwd=ROOT, log_file=log)
        return self.begun

    def states(self) -> dict[str, str]:
        """How every worker stands, as `serve.status` says."""
        done = self.run("serve.status", "--json")
        rows = json.loads(done.stdout.splitlines()[-1])["workers"]
        return {f"{row['host']}/{row['role']}": row["state"] for row in rows}

    def ids(self, host: FleetHost) -> list[str]:
        """The containers that run on a host, as id and name."""
        return host.text("docker", "ps", "--format", "{{.ID}} {{.Names}}").split("\n")[:-1]

    def clear(self) -> None:
        """Remove every container of every host, and end what a test let run."""
        if self.begun:
            self.begun.kill()
        for host in self.hosts:
            host.exec(
                "sh", "-c", "docker ps -aq | xargs -r docker rm -f; rm -rf /model /opt/bringup"
            )


@contextmanager
def docked(folder: Path, yard: Yard, count: int, *, init: str = "sh") -> Iterator[Docked]:
    """Make hosts with docker and the image on each."""
    with yard.hosts(count, docker=True, init=init) as hosts:
        first, *others = hosts
        done = first.exec("docker", "import", "-", TAG, stdin=image_tar())
        image = done.stdout.decode().strip()
        saved = first.exec("docker", "save", TAG).stdout
        for host in others:
            host.exec("docker", "load", stdin=saved)
        yield Docked(folder, yard, hosts, image)
