"""The way into a practice host: who may come in, where connections go on to, and its files."""

from __future__ import annotations

import asyncio
import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh

from .hardware import Faults
from .neighbours import Network
from .session import LOG

LOCAL = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Served:
    """One host as the server knows it. `port` 0 takes a free one."""

    name: str
    root: Path
    key: Path
    faults: Faults
    address: str
    port: int = 0


class Door(asyncssh.SSHServer):
    """Who may come in, and where connections may be passed on to: this machine's loopback alone."""

    def __init__(self, host: Served, user: str, key: asyncssh.SSHKey, network: Network) -> None:
        self._host = host
        self._user = user
        self._key = key
        self._network = network
        self._connection: asyncssh.SSHServerConnection

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Remember the connection, to pass others on through it."""
        self._connection = conn

    def auth_completed(self) -> None:
        """Note the login."""
        address = self._connection.get_extra_info("peername")
        LOG.info("%s login from port %s", self._host.name, address[1] if address else "?")

    async def begin_auth(self, username: str) -> bool:  # noqa: ARG002
        """Ask everyone for a key; a stalled host never answers."""
        if self._host.faults.login == "stall":
            await asyncio.sleep(86400)
        return True

    def public_key_auth_supported(self) -> bool:
        """Return True: keys are the only way in."""
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Let in the described login with the fleet's own key."""
        return username == self._user and key == self._key

    def connection_requested(self, dest_host: str, dest_port: int, *_: object) -> Any:  # noqa: ANN401 - what asyncssh takes
        """Pass `ssh -L` and `-W` on to loopback and the practice network; nothing else is there."""
        if _is_loopback(dest_host):
            return self._pass_on(dest_host, dest_port)
        if dest_host not in self._network:
            raise _no_way("No route to host")
        port = self._network[dest_host].get(str(dest_port))
        if port is None:
            raise _no_way("Connection refused")
        return self._pass_on(LOCAL, port)

    async def _pass_on(self, host: str, port: int) -> Any:  # noqa: ANN401 - a session of asyncssh
        try:
            return await self._connection.forward_connection(host, port)
        except asyncssh.ChannelOpenError:
            raise _no_way("Connection refused") from None

    def server_requested(self, listen_host: str, *_: object) -> bool:
        """Allow `ssh -R` on loopback."""
        return not listen_host or _is_loopback(listen_host)


def _no_way(why: str) -> asyncssh.ChannelOpenError:
    return asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, why)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Files(asyncssh.SFTPServer):
    """File transfer; relative names start in the login's home."""

    def __init__(self, channel: asyncssh.SSHServerChannel[bytes], *, home: Path) -> None:
        super().__init__(channel)
        self._home = os.fsencode(home)

    def map_path(self, path: bytes) -> bytes:
        """Return the local path of a name that the client sent."""
        return os.path.join(self._home, path)  # noqa: PTH118 - bytes

    def exit(self) -> None:
        """Say that all went well, as OpenSSH's server does: `scp` takes no answer for a failure."""
        self.channel.exit(0)
