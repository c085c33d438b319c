"""asyncssh and Fabric doing the same work: `python -m benchmarks.fleet.libraries TOOL JOB FOLDER`.

Each as its manual shows, in one process: the facts in one command, one sha256sum for all files of
a host, and where one differs, a tar through one command (asyncssh) or a put for each (Fabric).
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import shlex
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bringup.core.host import Host

from . import work
from .client import hosts
from .hosts import PORT

AT_ONCE = 64


def place_of(folder: Path, host: Host) -> str:
    return str(folder / "hosts" / host.name)


def check(folder: Path, host: Host, wanted: dict[str, bytes]) -> str:
    """Return the command that ends with 0 where every file is as wanted."""
    sums = "".join(f"{hashlib.sha256(c).hexdigest()}  {n}\n" for n, c in wanted.items())
    place = shlex.quote(place_of(folder, host))
    return f"cd {place} 2>/dev/null && sha256sum --quiet -c - >/dev/null 2>&1 <<'E'\n{sums}E\n"


def tar(wanted: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in wanted.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


async def by_asyncssh(job: str, folder: Path) -> None:
    import asyncssh

    places = asyncio.Semaphore(AT_ONCE)
    key = asyncssh.read_private_key(str(folder / "id"))
    known = asyncssh.read_known_hosts(str(folder / "known_hosts"))

    async def one(host: Host) -> None:
        login = host.login
        async with places, asyncssh.connect(
            login.address, PORT, username=login.user, client_keys=[key], known_hosts=known,
            agent_path=None, config=None,
        ) as line:  # fmt: skip
            if job == "facts":
                said = await line.run(work.facts_script(), check=True)
                assert str(said.stdout).count("\n") == len(work.FACTS)
                return
            wanted = work.wanted(host.name, login.address)
            if (await line.run(check(folder, host, wanted))).exit_status:
                to = shlex.quote(place_of(folder, host))
                command = f"mkdir -p {to} && tar -C {to} -xf -"
                await line.run(command, input=tar(wanted), encoding=None, check=True)

    await asyncio.gather(*(one(host) for host in hosts(folder).values()))


def by_fabric(job: str, folder: Path) -> None:
    import fabric

    config = fabric.Config(lazy=True, overrides={"load_ssh_configs": False})
    given = {"key_filename": str(folder / "id"), "look_for_keys": False, "allow_agent": False}

    def one(host: Host) -> None:
        login = host.login
        line = fabric.Connection(login.address, login.user, PORT, config=config,
                                 connect_kwargs=given)  # fmt: skip
        with line:
            if job == "facts":
                said = line.run(work.facts_script(), hide=True, in_stream=False).stdout
                assert said.count("\n") == len(work.FACTS)
                return
            wanted = work.wanted(host.name, login.address)
            script = check(folder, host, wanted)
            if line.run(script, hide=True, warn=True, in_stream=False).ok:
                return
            to = place_of(folder, host)
            line.run(f"mkdir -p {shlex.quote(to)}", hide=True, in_stream=False)
            for name, content in wanted.items():
                line.put(io.BytesIO(content), f"{to}/{name}")

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(one, hosts(folder).values()))


if __name__ == "__main__":
    tool, job, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    if job != "facts":
        work.read_payload(folder.parent / "payload")
    if tool == "fabric":
        by_fabric(job, folder)
    else:
        asyncio.run(by_asyncssh(job, folder))
