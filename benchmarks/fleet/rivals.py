"""The other tools, each set up as its manual advises for speed, in environments of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from . import work
from .hosts import PORT, Fleet

PROJECT = Path(__file__).parents[2]
FORKS = 50
JOBS = ("facts", "same", "deploy")
"""Gather facts; deploy with nothing to change; first deploy."""


NAMES = ("bringup", "ssh", "asyncssh", "fabric", "pyinfra", "ansible")


@dataclass(frozen=True, slots=True)
class Tool:
    """How a tool does each job: words by job, and variables to set."""

    name: str
    words: Mapping[str, tuple[str, ...]]
    environment: Mapping[str, str] = field(default_factory=dict)


def install(folder: Path) -> None:
    """Make the environments that are missing, with pip; they are thrown away with the folder."""
    for name, package in (("ansible", "ansible-core"), ("pyinfra", "pyinfra")):
        place = folder / f"venv-{name}"
        if not (place / "bin" / name).exists():
            subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
            words = [
                str(place / "bin/pip"),
                "install",
                "-q",
                "--disable-pip-version-check",
                package,
            ]
            subprocess.run(words, check=True)


def versions(folder: Path) -> dict[str, str]:
    """Return the version of each tool."""
    pip = {n: str(folder / f"venv-{n}/bin/pip") for n in ("ansible", "pyinfra")}
    packages = {"ansible": "ansible-core", "pyinfra": "pyinfra"}
    found = {}
    for name, program in pip.items():
        words = [program, "show", "--disable-pip-version-check", packages[name]]
        text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        found[name] = text.split("Version: ")[1].split()[0]
    said = subprocess.run(["ssh", "-V"], check=True, capture_output=True, text=True).stderr
    ours = {name: metadata.version(name) for name in ("paramiko", "fabric", "asyncssh")}
    return {**found, **ours, "ssh": said.split(",")[0]}


def tools(fleet: Fleet, folder: Path) -> tuple[Tool, ...]:
    """Return every tool, its files written for this fleet."""
    payload = folder / "payload"
    work.write_payload(payload)
    rows = (f"{n}\t{a}\t{fleet.user}\t{fleet.place(n)}\n" for n, a in fleet.hosts)
    (fleet.folder / "hosts.tsv").write_text("".join(rows))
    return (
        _bringup(fleet),
        _ssh(fleet, payload),
        _library("asyncssh", fleet),
        _library("fabric", fleet),
        _pyinfra(fleet, folder, payload),
        _ansible(fleet, folder, payload),
    )


def _bringup(fleet: Fleet) -> Tool:
    start = (sys.executable, "-m", "benchmarks.fleet.client")
    words = {
        job: (*start, "facts" if job == "facts" else "deploy", str(fleet.folder)) for job in JOBS
    }
    return Tool("bringup", words, {"PYTHONPATH": str(PROJECT)})


def _library(name: str, fleet: Fleet) -> Tool:
    start = (sys.executable, "-m", "benchmarks.fleet.libraries", name)
    words = {job: (*start, job, str(fleet.folder)) for job in JOBS}
    return Tool(name, words, {"PYTHONPATH": str(PROJECT)})


SSH_FACTS = """#!/bin/sh
cut -f2 "$1/hosts.tsv" |
  xargs -P {forks} -I@ sh -c 'ssh -F "$1/ssh_config" @ sh <"$2/facts.sh"' x "$1" "$2"
"""
# Each host's files are rendered, then compared by sums in one command, or sent as one tar.
SSH_DEPLOY = """#!/bin/sh
one() {
  name=$1 address=$2 place=$4
  own=$FLEET/own/$name
  rm -rf "$own"; mkdir -p "$own"
  for file in "$PAYLOAD"/templates/*.j2; do
    to=${file##*/}
    sed "s/{{ host }}/$name/g; s/{{ address }}/$address/g" "$file" >"$own/${to%.j2}"
  done
  cp "$PAYLOAD"/files/* "$own"
  fresh=$place.new
  (cd "$own" && sha256sum ./*) | ssh -F "$FLEET/ssh_config" "$address" \\
    "exec 2>/dev/null; cd $place && sha256sum --quiet -c - >/dev/null" && exit 0
  tar -C "$own" -cf - . | ssh -F "$FLEET/ssh_config" "$address" \\
    "mkdir -p $fresh && tar -C $fresh -xf - && rm -rf $place && mv $fresh $place"
}
if [ "${3:-}" = one ]; then FLEET=$1 PAYLOAD=$2; shift 3; one "$@"; exit; fi
tr '\\t' '\\n' <"$1/hosts.tsv" | xargs -P FORKS -n 4 sh "$0" "$1" "$2" one
"""


def _ssh(fleet: Fleet, payload: Path) -> Tool:
    facts, deploy = fleet.folder / "ssh-facts.sh", fleet.folder / "ssh-deploy.sh"
    facts.write_text(SSH_FACTS.format(forks=FORKS))
    deploy.write_text(SSH_DEPLOY.replace("FORKS", str(FORKS)))
    given = (str(fleet.folder), str(payload))
    words = {job: ("sh", str(facts if job == "facts" else deploy), *given) for job in JOBS}
    return Tool("ssh", words)


PYINFRA_HOSTS = """
hosts = [(name, {{"ssh_hostname": address, "ssh_port": {port}, "ssh_user": user,
    "ssh_key": "{folder}/id", "ssh_known_hosts_file": "{folder}/known_hosts",
    "ssh_strict_host_key_checking": "yes", "ssh_look_for_keys": False, "ssh_allow_agent": False,
    "place": place, "address": address}})
    for name, address, user, place in
    (line.rstrip("\\n").split("\\t") for line in open("{folder}/hosts.tsv"))]
"""
PYINFRA_DEPLOY = """
from importlib import metadata
from pathlib import Path
from pyinfra import host
from pyinfra.operations import files
payload, place = Path("{payload}"), host.data.place
files.directory(path=place, mode="755")
for file in sorted((payload / "files").iterdir()):
    files.put(src=str(file), dest=f"{{place}}/{{file.name}}", mode="644")
for file in sorted((payload / "templates").iterdir()):
    files.template(src=str(file), dest=f"{{place}}/{{file.stem}}", mode="644",
                   host=host.name, address=host.data.address)
"""
_SERVER = ("Hostname", "Kernel", "KernelVersion", "Arch", "Os", "OsRelease", "LinuxDistribution",
           "Date", "Mounts", "Users")  # fmt: skip
PYINFRA_FACTS = (*(f"server.{name}" for name in _SERVER), "hardware.Cpus", "hardware.Memory")


def _pyinfra(fleet: Fleet, folder: Path, payload: Path) -> Tool:
    inventory, script = fleet.folder / "pyinfra_hosts.py", fleet.folder / "pyinfra_deploy.py"
    inventory.write_text(PYINFRA_HOSTS.format(port=PORT, folder=fleet.folder))
    script.write_text(PYINFRA_DEPLOY.format(payload=payload))
    start = (str(folder / "venv-pyinfra/bin/pyinfra"), "-y", str(inventory))
    deploy = (*start, str(script))
    return Tool("pyinfra", {"facts": (*start, "fact", *PYINFRA_FACTS), "same": deploy,
                            "deploy": deploy})  # fmt: skip


ANSIBLE_CFG = """[defaults]
forks = {forks}
interpreter_python = /usr/bin/python3
display_ok_hosts = False
[ssh_connection]
pipelining = True
ssh_args = -F {folder}/ssh_config -o ControlMaster=auto -o ControlPersist=60s
control_path_dir = {folder}/control
"""
ANSIBLE_PLAY = """- hosts: all
  gather_facts: false
  vars: {{host: "{{{{ inventory_hostname }}}}", address: "{{{{ ansible_host }}}}"}}
  tasks:
    - ansible.builtin.file: {{path: "{{{{ place }}}}", state: directory, mode: "0755"}}
    - ansible.builtin.copy:
        {{src: "{{{{ item }}}}", dest: "{{{{ place }}}}/{{{{ item | basename }}}}", mode: "0644"}}
      loop: "{{{{ query('fileglob', '{payload}/files/*') }}}}"
    - ansible.builtin.template:
        src: "{{{{ item }}}}"
        dest: "{{{{ place }}}}/{{{{ item | basename | splitext | first }}}}"
        mode: "0644"
      loop: "{{{{ query('fileglob', '{payload}/templates/*') }}}}"
"""


def _ansible(fleet: Fleet, folder: Path, payload: Path) -> Tool:
    inventory, play = fleet.folder / "ansible.ini", fleet.folder / "play.yml"
    config = fleet.folder / "ansible.cfg"
    rows = (f"{n} ansible_host={a} place={fleet.place(n)}\n" for n, a in fleet.hosts)
    inventory.write_text("[all]\n" + "".join(rows))
    play.write_text(ANSIBLE_PLAY.format(payload=payload))
    config.write_text(ANSIBLE_CFG.format(forks=FORKS, folder=fleet.folder))
    programs = folder / "venv-ansible/bin"
    deploy = (str(programs / "ansible-playbook"), "-i", str(inventory), str(play))
    facts = (str(programs / "ansible"), "-i", str(inventory), "all", "-m", "setup",
             "-a", "gather_subset=!all,min")  # fmt: skip
    environment = {
        "ANSIBLE_CONFIG": str(config),
        "ANSIBLE_HOME": str(fleet.folder / "ansible"),
        "ANSIBLE_LOCAL_TEMP": str(fleet.folder / "ansible/tmp"),
    }
    return Tool("ansible", {"facts": facts, "same": deploy, "deploy": deploy}, environment)
