"""A host with a real docker, an image with the stand-in, and a deployment to be measured on it."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import sysconfig
import tarfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.dynamo.processes import Program
from tests.fleet.yard import FleetHost, Yard
from tests.serve.docked import real_files

ROOT = Path(__file__).parents[2]
STANDIN = Path(__file__).parent / "standin.py"
NAME, TAG = "toy", "vllm-standin:1"
SKIPPED = {"site-packages", "test", "idlelib", "lib2to3", "ensurepip", "tkinter", "__pycache__",
           "turtledemo", "pydoc_data"}  # fmt: skip

# Two cards that are free, unless a file says that somebody's process is on the first one.
SMI = """\
#!/bin/sh
[ "$1" = -q ] || exit 0
card() {
  echo "<gpu id=\\"00000000:0$1:00.0\\"><product_name>NVIDIA B200</product_name><uuid>GPU-$1</uuid>"
  echo "<minor_number>$1</minor_number><fb_memory_usage><total>183359 MiB</total>"
  if [ "$1" = 1 ] && [ -f /model/foreign ]; then
    echo "<used>90000 MiB</used></fb_memory_usage><processes><process_info><pid>4242</pid>"
    echo "<type>C</type><process_name>/opt/train/run.py</process_name>"
    echo "<used_memory>89000 MiB</used_memory></process_info></processes></gpu>"
  elif [ -f /model/leak ]; then
    echo "<used>90000 MiB</used></fb_memory_usage><processes></processes></gpu>"
  else
    echo "<used>4 MiB</used></fb_memory_usage><processes></processes></gpu>"
  fi
}
echo '<?xml version="1.0" ?><nvidia_smi_log><driver_version>580.95.05</driver_version>'
echo '<cuda_version>13.0</cuda_version><attached_gpus>2</attached_gpus>'
card 1
card 2
echo '</nvidia_smi_log>'
"""


def python() -> Path:
    return Path(sys.base_prefix) / f"bin/python{sysconfig.get_python_version()}"


def script(interpreter: str = "") -> bytes:
    """Return the stand-in as a program, of the image's Python unless another is named."""
    return f"#!{interpreter or python()}\n{STANDIN.read_text()}".encode()


def image_tar() -> bytes:
    """Return the root of an image: Python with its own library, `vllm`, and a few commands."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", dereference=True) as tar:
        library = sysconfig.get_path("stdlib")
        modules = [str(path) for path in Path(library).glob("lib-dynload/*.so")]
        programs = ["/bin/busybox", str(python()), *modules]
        every = dict.fromkeys(path for one in programs for path in real_files(one))
        for path in every:
            if f"/{path}" not in modules:
                tar.add(os.path.realpath(f"/{path}"), path)
        tar.add(library, library.lstrip("/"), filter=_wanted)
        info = tarfile.TarInfo("usr/local/bin/vllm")
        info.size, info.mode = len(script()), 0o755
        tar.addfile(info, io.BytesIO(script()))
        for applet in ("sh", "cat", "rm", "sleep"):
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    return out.getvalue()


def _wanted(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    names = Path(info.name).parts
    return None if SKIPPED & set(names) or any(n.startswith("config-") for n in names) else info


@dataclass
class Ground:
    """An inventory of one host, and the command line pointed at it."""

    folder: Path
    yard: Yard
    host: FleetHost
    image: str
    begun: Program | None = None
    """What a test started and let run; it ends with the test, also where that fails."""

    @property
    def inventory(self) -> Path:
        return self.folder / "inventory"

    def write(self, *, in_container: bool = True, **knobs: Any) -> None:
        """Write the inventory: a pair, from which the others are derived."""
        (self.inventory / "deployments").mkdir(parents=True, exist_ok=True)
        (self.inventory / "kinds").mkdir(exist_ok=True)
        login = {"address": self.host.address, "user": "root", "key_file": str(self.host.key),
                 "keepalive_s": 5}  # fmt: skip
        hosts = {"hosts": {self.host.name: login}}
        (self.inventory / "hosts.yml").write_text(yaml.safe_dump(hosts))
        path = self.inventory / f"deployments/{NAME}.yml"
        path.write_text(yaml.safe_dump(self._deployment(in_container, knobs)))

    def _deployment(self, in_container: bool, knobs: dict[str, Any]) -> dict[str, Any]:
        image = {"name": "standin", "reference": TAG, "digest": self.image,
                 "engine_version": "0.24.0"}  # fmt: skip
        role = {"hosts": self.host.name, "knobs": {"port": 8100}}
        return {
            "engine": "vllm",
            "model": {"served_name": NAME, "path": "/model", "weights_gib": 15},
            "image": image,
            "in_container": in_container,
            "roles": {"prefill": {"mode": "prefill", "gpus": [0], **role},
                      "decode": {"mode": "decode", "gpus": [1], **role, "knobs": {"port": 8200}}},
            "knobs": {"gpu_access": "none", "memlock": "65536", "shm": "64m",
                      "max_model_len": 4096, **knobs},
        }  # fmt: skip

    def behave(self, **told: Any) -> None:
        """Say how the stand-in behaves from its next start on."""
        self.host.exec("tee", "/model/behave.json", stdin=json.dumps(told).encode())

    def words(self, *more: str) -> list[str]:
        words = [sys.executable, "-m", "bringup", "bench.topologies", "--deployment", NAME]
        words += ["--inventory", str(self.inventory), "--state", str(self.folder / "state")]
        words += ["--known-hosts", str(self.yard.known_hosts), "--every", "0.3"]
        accepted = [word for one in ACCEPTED for word in ("--accept", one)]
        return [*words, *accepted, *TRAFFIC, *more]

    def run(self, *more: str, seconds: int = 900) -> subprocess.CompletedProcess[str]:
        """Run the verb to its end."""
        return subprocess.run(
            self.words(*more), cwd=ROOT, capture_output=True, text=True, check=False,
            timeout=seconds,
        )  # fmt: skip

    def document(self, *more: str) -> dict[str, Any]:
        """Run the verb and return its document, exit code included."""
        done = self.run("--json", *more)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        found = [one for one in lines if one.get("schema") == "bringup.bench/1"]
        assert found, done.stdout[-3000:] + done.stderr
        return {**found[-1], "exit": done.returncode}

    def advise(self) -> subprocess.CompletedProcess[str]:
        """Ask for advice with the lengths that were measured."""
        words = [sys.executable, "-m", "bringup", "topology.advise", NAME, "--json"]
        words += ["--input-tokens", "16", "--output-tokens", "40"]
        words += ["--inventory", str(self.inventory), "--state", str(self.folder / "state")]
        words += ["--known-hosts", str(self.yard.known_hosts)]
        return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)

    def begin(self, *more: str) -> Program:
        """Start the verb and let it run."""
        log = self.folder / "begun.out"
        log.unlink(missing_ok=True)
        env = dict(os.environ)
        self.begun = Program.start("bench", self.words(*more), env=env, cwd=ROOT, log_file=log)
        return self.begun

    def waits_for(self, program: Program, topology: str) -> None:
        """Wait until the run has started a topology and looks at how its start goes.

        The line comes with each look and its figures differ: on a busy machine the first one
        is not at 0 s.
        """
        program.says(f"  {topology} start: ", seconds=600)

    def interrupt(self, program: Program) -> int:
        """Press Ctrl-C; return the exit code."""
        program.child.send_signal(signal.SIGINT)
        return program.ends()

    def names(self) -> list[str]:
        """The containers of the host, running or not."""
        told = self.host.text("docker", "ps", "--all", "--format", "{{.Names}}")
        return sorted(told.split())

    def clear(self) -> None:
        """Leave nothing of an earlier test."""
        if self.begun:
            self.begun.kill()
        text = """
            docker ps -aq | xargs -r docker rm -f
            rm -rf /model /opt/bringup; mkdir -p /model
            echo '{}' >/model/config.json
            """
        self.host.exec("sh", "-c", textwrap.dedent(text))
        subprocess.run(["rm", "-rf", str(self.folder / "state")], check=True)


TRAFFIC = ("--traffic", "16x40", "--prompts", "4")
ACCEPTED = ("GPU-01", "GPU-02", "GPU-07", "GPU-22", "STO-04", "CTR-03", "container-engine")
"""What a host misses whose cards only nvidia-smi knows."""


@contextmanager
def ground(folder: Path, yard: Yard) -> Iterator[Ground]:
    """Make a host with docker, the image, a router and two cards that only nvidia-smi knows."""
    with yard.hosts(1, docker=True) as (host,):
        done = host.exec("docker", "import", "-", TAG, stdin=image_tar())
        for path, content in (
            ("/usr/local/bin/vllm-router", script("/usr/bin/env python3")),
            ("/usr/local/bin/vllm", script("/usr/bin/env python3")),
            ("/usr/local/bin/nvidia-smi", SMI.encode()),
        ):
            host.exec("tee", path, stdin=content)
            host.exec("chmod", "755", path)
        yield Ground(folder, yard, host, done.stdout.decode().strip())
