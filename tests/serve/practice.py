"""A whole deployment on this machine: the written scripts, the real Dynamo, workers without a GPU.

The scripts are those that bringup renders. Their interpreter is a stand-in that starts
tests/dynamo/worker.py for `-m dynamo.sglang`, with the times a test has set for its role, and the
real frontend for `-m dynamo.frontend`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from bringup.core.facts import Facts
from bringup.decide import Design, design
from bringup.edge.render import Renderer
from bringup.engines.values import values
from bringup.flow.open import read_inventory
from bringup.flow.provision import steps_of
from bringup.flow.serve import Wish, know
from bringup.flow.serve_open import serving_tools
from bringup.options.hosts import Workspace
from tests.dynamo.loopback import WORKER, Loopback
from tests.dynamo.processes import PATIENCE_S, Program, free_low_port, free_ports, until

ROOT = Path(__file__).parents[2]
NAME = "toy"

STANDIN = """\
#!{python}
import json, os, pathlib, sys
words = sys.argv[1:]
if words[:1] != ["-m"]:
    os.execv({real!r}, [{real!r}, *words])
module, rest = words[1], words[2:]
folder = pathlib.Path({folder!r})
mode = rest[rest.index("--disaggregation-mode") + 1] if "--disaggregation-mode" in rest else "agg"
part = "frontend" if module == "dynamo.frontend" else mode
told = json.loads((folder / (part + ".json")).read_text())
home = folder / ("home-" + part)
home.mkdir(exist_ok=True)
os.environ.update({environment!r} | {{"HOME": str(home)}} | told.get("env", {{}}))
if told.get("say"):
    print(told["say"], flush=True)
if told.get("exit") is not None:
    sys.exit(told["exit"])
if part == "frontend":
    os.execv({real!r}, [{real!r}, *words, *told.get("words", [])])
def given(flag):
    return rest[rest.index(flag) + 1]
name = told.get("name") or given("--served-model-name")
argv = [{real!r}, {worker!r}, "--mode", mode, "--model-path", given("--model-path"),
        "--served-model-name", name, *told.get("words", [])]
os.execv({real!r}, argv)
"""


@dataclass
class Practice:
    """Inventory, scripts and stand-ins below one folder; etcd and what runs belong to `dynamo`."""

    folder: Path
    dynamo: Loopback
    model: Path
    login: Mapping[str, Any] = field(default_factory=dict)
    known_hosts: str = ""
    roles: Mapping[str, str] = field(
        default_factory=lambda: {"prefill": "prefill", "decode": "decode"}
    )
    with_front: bool = True
    ready_timeout_s: int = 900
    spares: tuple[
        str, ...
    ] = ()  # hosts of the decode role besides its first, each a place of its own
    ports: dict[str, int] = field(default_factory=dict)
    begun: list[Program] = field(default_factory=list)  # verbs that a test lets run

    def __post_init__(self) -> None:
        names = [*self.roles, "http"]
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))
        self.ports |= {f"{role}.system": free_low_port() for role in self.roles}
        self._write_stand_in(self.folder)
        for part in ("prefill", "decode", "agg", "frontend"):
            self.set(part)
        self.write_inventory()
        self.write_scripts()

    @property
    def inventory(self) -> Path:
        return self.folder / "inventory"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports['http']}"

    def set(self, part: str, **told: Any) -> None:
        """Say how a part behaves from its next start on: words, env, name, say, exit."""
        (self.folder / f"{part}.json").write_text(json.dumps(told))

    def place(self, host: str) -> Path:
        """The folder in which a spare host has all that is its own."""
        return self.folder / host

    def add_spare(self, host: str) -> None:
        """Name one more decode host, with settings of its own (`set_spare`) and fresh ports."""
        self.spares = (*self.spares, host)
        if not self.place(host).exists():
            self.place(host).mkdir()
            self._write_stand_in(self.place(host))
            self.set_spare(host)
            self.ports |= {host: free_ports(1)[0], f"{host}.system": free_low_port()}
        self.write_inventory()

    def set_spare(self, host: str, **told: Any) -> None:
        """Say how the decode worker of a spare host behaves from its next start on."""
        (self.place(host) / "decode.json").write_text(json.dumps(told))

    def script(self, role: str, word: str) -> subprocess.CompletedProcess[str]:
        """Run a written script."""
        name = "frontend" if role == "frontend" else self.roles[role]
        file = "serve_dynamo.sh" if name == "aggregated" else f"serve_dynamo_{name}.sh"
        path = self.folder / f"serve/{NAME}/{file}"
        return subprocess.run(
            ["sh", str(path), word], capture_output=True, text=True, check=False, timeout=240
        )

    def start(self, *roles: str) -> None:
        """Start parts by their scripts, after what ran of them was killed."""
        self._kill(roles or (*self.roles, "frontend"))
        for role in roles or (*self.roles, *(["frontend"] if self.with_front else [])):
            done = self.script(role, "--start")
            assert done.returncode == 0, done.stdout + done.stderr

    def log(self, role: str) -> str:
        path = self.folder / f"log/{NAME}-{role}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def pid(self, role: str) -> int:
        """The number of a running part."""
        path = self.folder / f"serve/{NAME}/{NAME}-{role}.pid"
        return int(path.read_text().split()[0])

    def stop(self) -> None:
        """Kill whatever runs."""
        for program in self.begun:
            program.kill()
        self._kill((*self.roles, "frontend"))
        for path in self.folder.glob(f"*/serve/{NAME}/*.pid"):
            with suppress(ProcessLookupError):
                os.killpg(int(path.read_text().split()[0]), signal.SIGKILL)

    def _kill(self, roles: Iterable[str]) -> None:
        """A registered worker takes its keys along when asked; a loading one does not listen."""
        pids = []
        for role in roles:
            with suppress(FileNotFoundError, ProcessLookupError):
                pids.append(self.pid(role))
                os.killpg(pids[-1], signal.SIGTERM)
        with suppress(AssertionError):
            until(lambda: not any(_runs(pid) for pid in pids), "all have ended", seconds=3)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)

    def words(self, verb: str, *more: str) -> list[str]:
        """The command line of a verb, on this deployment."""
        place = ["--deployment", NAME, "--inventory", str(self.inventory)]
        state = ["--state", str(self.folder / "state")]
        how = ["--known-hosts", self.known_hosts] if self.known_hosts else ["--local"]
        return [sys.executable, "-m", "bringup", verb, *place, *state, *how, *more]

    def run(self, verb: str, *more: str, seconds: int = 600) -> subprocess.CompletedProcess[str]:
        """Run a verb to its end; again where somebody else on this machine holds its lock."""
        ends = time.monotonic() + PATIENCE_S
        while True:
            done = subprocess.run(
                self.words(verb, *more), cwd=ROOT, capture_output=True, text=True, check=False,
                timeout=seconds, env={**os.environ, "HOME": str(self.folder)},
            )  # fmt: skip
            if "cannot lock" not in done.stderr or time.monotonic() > ends:
                return done
            time.sleep(1)

    def begin(self, verb: str, *more: str) -> Program:
        """Start a verb and let it run."""
        log = self.folder / f"{verb}-{len(list(self.folder.glob('*.out')))}.out"
        env = {**os.environ, "HOME": str(self.folder)}
        words = self.words(verb, *more)
        self.begun.append(Program.start(verb, words, env=env, cwd=ROOT, log_file=log))
        return self.begun[-1]

    def write_inventory(self, **services: Any) -> None:
        """Write hosts and deployment."""
        self.inventory.mkdir(exist_ok=True)
        for name in ("deployments", "kinds"):
            (self.inventory / name).mkdir(exist_ok=True)
        login = dict(self.login) or {"user": "root"}
        hosts = {
            name: {"address": f"127.0.0.{number}", **login}
            for number, name in enumerate((*self._hosts(), *self.spares), 1)
        }
        for name in self.spares:
            hosts[name]["knobs"] = self._own(name)
        (self.inventory / "hosts.yml").write_text(yaml.safe_dump({"hosts": hosts}))
        path = self.inventory / f"deployments/{NAME}.yml"
        path.write_text(yaml.safe_dump(self._deployment(services), sort_keys=False))

    def _own(self, host: str) -> dict[str, Any]:
        names = ("venv", "serve", "log")
        venv, serve, log = (str(self.place(host) / name) for name in names)
        return {"venv": venv, "serve_folder": serve, "log_folder": log,
                "port": self.ports[host], "system_port": self.ports[f"{host}.system"]}  # fmt: skip

    def _hosts(self) -> list[str]:
        return [f"h{number}" for number, _ in enumerate(self.roles, 1)]

    def _deployment(self, services: Mapping[str, Any]) -> dict[str, Any]:
        assert self.dynamo.etcd is not None
        spoken: dict[str, Any] = {"etcd": [self.dynamo.etcd.url], "frontend": self.url}
        if self.dynamo.nats:
            spoken["nats"] = self.dynamo.nats
        pairs = zip(self.roles.items(), self._hosts(), strict=True)
        return {
            "engine": "dynamo.sglang",
            "model": {"served_name": NAME, "path": str(self.model)},
            "image": {"name": "practice", "dynamo_version": "1.3.0.post1"},
            "in_container": False,
            "accept_tcp": True,
            "roles": {role: self._role(role, mode, host) for (role, mode), host in pairs},
            "services": {**spoken, **services},
            "knobs": {
                "venv": str(self.folder / "venv"),
                "serve_folder": str(self.folder / "serve"),
                "log_folder": str(self.folder / "log"),
                "ready_timeout_s": self.ready_timeout_s,
                "listen_address": "127.0.0.1",
            },
        }

    def _role(self, role: str, mode: str, host: str) -> dict[str, Any]:
        knobs = {"port": self.ports[role], "system_port": self.ports[f"{role}.system"]}
        hosts = [host, *self.spares] if mode == "decode" else [host]
        return {"mode": mode, "hosts": hosts, "knobs": knobs}

    def write_scripts(self) -> None:
        """Render every part and write it where the scripts of a host lie."""
        inventory = read_inventory(str(self.inventory))
        deployment = inventory.deployments[NAME]
        blank = {name: Facts() for name in inventory.hosts}
        renderer = Renderer(ROOT / "templates")
        for host in inventory.hosts.values():
            for part in design(inventory, host, deployment, blank, {}).parts:
                world = part.world
                assert world.role is not None
                given = values(part.spec, world, deployment, world.role, tool="bringup test")
                path = Path(part.spec.script)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(renderer.text(part.spec.template, given))
                path.chmod(0o755)

    def write_scripts_by_facts(self) -> None:
        """Write what `provision` would write: by the facts of this machine, where `start` looks."""
        known = read_inventory(str(self.inventory))
        workspace = Workspace(inventory=str(self.inventory), state=str(self.folder / "state"))
        with serving_tools(known, workspace, lambda _: None, local=True) as tools:
            for part in know(tools, Wish(known, known.deployments[NAME])).parts.values():
                host = part.world.host
                for step in steps_of(tools, Design(host, (), (part,))):
                    tools.fleet.remote(host.name).write(step.actions)  # type: ignore[arg-type]

    def _write_stand_in(self, folder: Path) -> None:
        binaries = folder / "venv/bin"
        binaries.mkdir(parents=True)
        (binaries / "python").symlink_to(sys.executable)
        environment = {
            "DYN_SYSTEM_HOST": "127.0.0.1",
            "DYN_TCP_RESPONSE_STREAM_HOST": "lo",
            "DYN_SDK_DISABLE_ANSI_LOGGING": "1",
            "DYN_LOG": "info",
            "HF_ENDPOINT": "http://127.0.0.1:9",
        }
        text = STANDIN.format(
            python=sys.executable, real=str(self.dynamo.python), folder=str(folder),
            environment=environment, worker=str(WORKER),
        )  # fmt: skip
        (binaries / "python3").write_text(textwrap.dedent(text))
        (binaries / "python3").chmod(0o755)


def _runs(pid: int) -> bool:
    """Whether a process lives; the script's own child is collected by nobody."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@contextmanager
def practice(folder: Path, dynamo: Loopback, model: Path, **more: Any) -> Iterator[Practice]:
    """Make a deployment in a folder; what runs at the end is stopped."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Practice(folder, dynamo, model, **more)
    try:
        yield made
    finally:
        made.stop()


__all__ = ["NAME", "Practice", "practice", "until"]
