"""A real Dynamo on loopback: discovery, frontends, workers without a GPU. Nothing leaves it.

with Loopback(folder, python=dynamo_python(), discovery="etcd") as dynamo:
    model = toy_model(folder / "models" / "toy")
    dynamo.pair(model, "toy")
    frontend = dynamo.frontend()
    frontend.lists("toy")
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal

from bringup.core.errors import ToolError, Unreachable
from bringup.edge.discovery import read_etcd, read_folder
from bringup.edge.http import Answer, ask
from bringup.readiness.cards import Announced
from tests.needed import require

from .etcd import Server, start_etcd
from .processes import PATIENCE_S, Program, free_ports, until

WORKER = Path(__file__).parent / "worker.py"

Mode = Literal["agg", "prefill", "decode"]


@dataclass(frozen=True, slots=True)
class Frontend:
    """A running frontend: its URL, its program, and the folder of its home."""

    url: str
    program: Program
    home: Path

    def get(self, path: str) -> Answer:
        return ask(self.url + path, seconds=PATIENCE_S)

    def models(self) -> list[str]:
        """Return the names that /v1/models lists."""
        return [model["id"] for model in json.loads(self.get("/v1/models").body)["data"]]

    def lists(self, name: str, *, seconds: float = PATIENCE_S) -> None:
        """Wait until a model is listed."""
        listed = f"{name} is listed"
        self.program.wait_for(lambda: name in self.models(), listed, seconds=seconds)

    def chat(self, name: str, *, max_tokens: int = 4, **more: object) -> Answer:
        """Ask for one chat completion, not streamed unless `stream=True` is given."""
        message = {"role": "user", "content": "hello"}
        wish = {"model": name, "messages": [message], "max_tokens": max_tokens, **more}
        return ask(
            f"{self.url}/v1/chat/completions",
            method="POST",
            body=json.dumps(wish).encode(),
            headers={"Content-Type": "application/json"},
            seconds=PATIENCE_S,
        )

    @property
    def alive(self) -> bool:
        try:
            return ask(f"{self.url}/live", seconds=30).status == 200
        except Unreachable:
            return False


@dataclass(slots=True)
class Loopback:
    """Everything of one test or module; `close` ends all of it.

    `python` has ai-dynamo. Discovery is etcd (started here unless `etcd` is given) or a folder.
    """

    folder: Path
    python: Path
    discovery: Literal["etcd", "file"] = "etcd"
    etcd: Server | None = None
    nats: str = ""
    programs: list[Program] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("logs", "homes", "cwd"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        if self.discovery == "etcd" and self.etcd is None:
            self.etcd = start_etcd(self.folder / "etcd")
            self.programs.append(self.etcd.program)

    def __enter__(self) -> Loopback:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all programs, the last started first."""
        for program in reversed(self.programs):
            program.kill()

    @property
    def file_store(self) -> Path:
        """The folder that stands for etcd under file discovery."""
        return self.folder / "discovery"

    def start_nats(self) -> str:
        """Start a NATS server; workers and frontends started later connect to it."""
        require("nats-server")
        (port,) = free_ports(1)
        data = str(self.folder / "nats")
        words = ["nats-server", "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", data]
        self._start("nats", words, {"PATH": os.environ["PATH"]}).says("Server is ready")
        self.nats = f"nats://127.0.0.1:{port}"
        return self.nats

    def worker(
        self,
        model: Path,
        name: str,
        mode: Mode = "agg",
        *,
        wait: bool = True,
        env: Mapping[str, str] | None = None,
        system_port: int = 0,
        **options: str | float,
    ) -> Program:
        """Start a worker; options are those of `worker.py`, as ``load_s=5`` for ``--load-s 5``.

        Waits until it has registered unless told not to. With a system port it answers /health
        there, and can serve the model's files (DYN_SELF_HOST_METADATA).
        """
        program = self._worker(model, name, mode, options, env or {}, system_port)
        if wait:
            program.says(f"registered {model} as {name}")
        return program

    def pair(
        self,
        model: Path,
        name: str,
        *,
        env: Mapping[str, str] | None = None,
        **options: str | float,
    ) -> tuple[Program, Program]:
        """Start a prefill and a decode worker side by side; return when both have registered."""
        prefill = self._worker(model, name, "prefill", options, env or {})
        decode = self._worker(model, name, "decode", options, env or {})
        for program in (prefill, decode):
            program.says(f"registered {model} as {name}")
        return prefill, decode

    def frontend(
        self,
        *args: str,
        env: Mapping[str, str] | None = None,
        home: Path | None = None,
        namespace: str = "",
    ) -> Frontend:
        """Start a frontend and wait until it lives; its home (and so its card cache) is fresh.

        Without a namespace it sees models of all namespaces.
        """
        home = home or self._home("frontend")
        for _ in range(5):
            (port,) = free_ports(1)
            words = [str(self.python), "-m", "dynamo.frontend", "--http-host", "127.0.0.1"]
            words += ["--http-port", str(port), *args]
            words += ["--namespace", namespace] if namespace else []
            settings = {**self._env(home), **(env or {})}
            program = self._start(f"frontend-{len(self.programs)}", words, settings)
            frontend = Frontend(f"http://127.0.0.1:{port}", program, home)
            until(functools.partial(_settled, frontend), "the frontend lives or ends")
            if program.runs or "in use" not in program.log:
                return frontend
        raise AssertionError("the frontend found no free port in five tries")

    def announced(self) -> Announced:
        """Return what workers have in discovery: cards and instances."""
        return read_etcd(self.etcd.client) if self.etcd else read_folder(self.file_store)

    def forget(self) -> None:
        """Take out of etcd what workers that were killed left there: it stays as long as a lease.

        A test that counts what is announced would else count workers of the test before it.
        """
        if self.etcd is None:
            return
        for lease in {one.lease for one in self.etcd.client.range("v1/") if one.lease}:
            with suppress(ToolError):  # it has ended meanwhile
                self.etcd.client.revoke(lease)

    def _worker(
        self,
        model: Path,
        name: str,
        mode: Mode,
        options: Mapping[str, str | float],
        env: Mapping[str, str],
        system_port: int = 0,
    ) -> Program:
        words = [str(self.python), str(WORKER), "--mode", mode]
        words += ["--model-path", str(model), "--served-model-name", name]
        for option, value in options.items():
            words += [f"--{option.replace('_', '-')}", str(value)]
        port = {"DYN_SYSTEM_PORT": str(system_port)} if system_port else {}
        settings = {**self._env(self._home("worker")), **port, **env}
        return self._start(f"{mode}-{len(self.programs)}", words, settings)

    def _home(self, label: str) -> Path:
        home = self.folder / "homes" / f"{label}-{len(self.programs)}"
        home.mkdir(exist_ok=True)
        return home

    def _start(self, label: str, words: list[str], env: Mapping[str, str]) -> Program:
        log = self.folder / "logs" / f"{label}.log"
        program = Program.start(label, words, env=env, cwd=self.folder / "cwd", log_file=log)
        self.programs.append(program)
        return program

    def _env(self, home: Path) -> dict[str, str]:
        """Return the environment that keeps every Dynamo process on loopback."""
        places = (
            {"ETCD_ENDPOINTS": self.etcd.url}
            if self.etcd is not None
            else {"DYN_FILE_KV": str(self.file_store)}
        )
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "DYN_DISCOVERY_BACKEND": self.discovery,
            "DYN_TCP_RPC_HOST": "127.0.0.1",
            "DYN_SYSTEM_HOST": "127.0.0.1",
            "DYN_TCP_RESPONSE_STREAM_HOST": "lo",  # 1.3 wants the name of an interface
            "DYN_SDK_DISABLE_ANSI_LOGGING": "1",
            "DYN_LOG": "info",
            "HF_ENDPOINT": "http://127.0.0.1:9",  # the hub look-up fails here, and at once
            **places,
            **({"NATS_SERVER": self.nats} if self.nats else {}),
        }


def _settled(frontend: Frontend) -> bool:
    return not frontend.program.runs or frontend.alive
