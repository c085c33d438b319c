"""From a byte stream to an encrypted line whose far end is the host that was meant."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Iterable

import paramiko

from ..core.errors import Interrupted, Unreachable
from . import ssh_flight
from .ssh_config import Endpoint
from .ssh_keys import HostKey
from .ssh_socket import MeteredStream

# What paramiko would print by itself is said by our errors; a handler of the application's wins.
logging.getLogger("paramiko").addHandler(logging.NullHandler())

CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "aes192-ctr",
           "aes256-ctr")  # fmt: skip
"""GCM first: 184 MB/s against paramiko's own first choice of 133 MB/s (docs/ssh.md)."""

DIGESTS = ("hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com", "hmac-sha2-256",
           "hmac-sha2-512")  # fmt: skip

HOST_KEYS = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
             "rsa-sha2-512", "rsa-sha2-256")  # fmt: skip

SILENT_PERIODS = 3
"""A line on which nothing came for this many keepalive periods is dead."""


class Dropped(Exception):
    """The server closed the line before it said its version: mostly MaxStartups; worth a retry."""


class HostTransport(paramiko.Transport):
    """paramiko's transport, asking for the host key types that we know first."""

    host_kinds: tuple[str, ...] = HOST_KEYS

    @property
    def preferred_keys(self) -> tuple[str, ...]:
        return self.host_kinds


def shake_hands(
    stream: MeteredStream, endpoint: Endpoint, kinds: Iterable[str], stop: threading.Event
) -> HostTransport:
    """Return a transport with keys agreed on, not yet logged in.

    Raises Dropped, or Unreachable naming the stage that failed. The stream is closed then.
    """
    transport = HostTransport(stream)  # type: ignore[arg-type]  # needs recv, send, close only
    options = transport.get_security_options()
    options.ciphers, options.digests = CIPHERS, DIGESTS
    transport.host_kinds = tuple(kinds)
    transport.banner_timeout = transport.handshake_timeout = 2 * endpoint.connect_s
    done = threading.Event()
    transport.start_client(event=done)
    in_time = done.wait(2 * endpoint.connect_s)
    if in_time and transport.is_active():
        _keep_alive(transport, stream, endpoint)
        return transport
    trouble = transport.get_exception()
    stream.abort()
    transport.close()
    if stop.is_set():
        raise Interrupted(f"cannot go on with {endpoint.label}: the run was stopped")
    first = stream.opening.decode(errors="replace").partition("\n")[0].strip()
    raise _fault(transport, endpoint, trouble, first, in_time=in_time)


def host_key(transport: paramiko.Transport) -> HostKey:
    """Return the key that the server proved to have; a certificate whole."""
    key = transport.get_remote_server_key()
    if key.public_blob is not None:
        return HostKey(key.public_blob.key_type, key.public_blob.key_blob)
    return HostKey(key.get_name(), key.asbytes())


def _keep_alive(transport: HostTransport, stream: MeteredStream, endpoint: Endpoint) -> None:
    """Ask the server for a sign of life now and then, and end a line that gives none."""
    period = endpoint.keepalive_s
    patience = (SILENT_PERIODS - 1) * period
    asked_at = math.inf

    def ask() -> None:
        nonlocal asked_at
        now = time.monotonic()
        if stream.heard_at < asked_at < now - patience:
            stream.trouble = f"nothing came for {now - stream.heard_at:.0f} s"
            raise EOFError(stream.trouble)
        if stream.heard_at >= asked_at or asked_at == math.inf:
            asked_at = now
        ssh_flight.ask_alive(transport)

    if period > 0:
        transport.packetizer.set_keepalive(period, ask)


_FULL = ("MaxStartups", "Not allowed", "SSH-")
"""What an sshd says before its version when it takes no more logins, or the version itself."""


def _fault(
    transport: paramiko.Transport,
    endpoint: Endpoint,
    trouble: Exception | None,
    first: str,
    *,
    in_time: bool,
) -> Exception:
    """Return the fault of a handshake; `first` is the first line that the other side said."""
    where = f"{endpoint.label} at {endpoint.address} port {endpoint.port}"
    said = str(trouble or "")
    if transport.remote_version:
        return _kex_fault(transport, endpoint, said, in_time=in_time)
    if not in_time:
        return Unreachable(
            f"cannot reach {where}: it takes the connection but sends no SSH version within"
            f" {2 * endpoint.connect_s:g} s",
            host=endpoint.label,
            remedy="sshd hangs or is not what listens there; see its console:"
            " systemctl status ssh, load, memory",
        )
    strange = first and not any(word in first for word in _FULL)
    if strange or "Indecipherable" in said or "Invalid SSH banner" in said:
        return Unreachable(
            f"cannot reach {where}: what answers there is not SSH",
            host=endpoint.label,
            said=first or said,
            remedy="correct port: in the inventory",
        )
    return Dropped(said)


def _kex_fault(
    transport: paramiko.Transport, endpoint: Endpoint, said: str, *, in_time: bool
) -> Unreachable:
    where = f"{endpoint.label} at {endpoint.address} port {endpoint.port}"
    version = transport.remote_version
    if "Incompatible" in said:
        options = transport.get_security_options()
        ours = " ".join((*options.kex, *transport.preferred_keys, *options.ciphers))
        return Unreachable(
            f"cannot agree with {where} on how to encrypt: {said}",
            host=endpoint.label,
            said=f"{version}\nours: {ours}",
            remedy="allow one of ours in its sshd_config (sshd -T shows kexalgorithms, ciphers,"
            " hostkeyalgorithms)",
        )
    why = "the line closed" if in_time else f"no answer within {2 * endpoint.connect_s:g} s"
    return Unreachable(
        f"cannot agree on keys with {where}: {why} in the middle of the key exchange",
        host=endpoint.label,
        said=f"{version}\n{said}".strip(),
        remedy="see the host's load and its sshd log: journalctl -u ssh -n 20",
    )


def max_startups(endpoint: Endpoint, tries: int) -> Unreachable:
    """Return the error of a server that closed every try before it said its version."""
    return Unreachable(
        f"cannot reach {endpoint.label} at {endpoint.address} port {endpoint.port}: it closed the"
        f" connection {tries} times before it said its version",
        host=endpoint.label,
        remedy="too many logins at once (MaxStartups in its sshd_config), a ban (fail2ban,"
        " PerSourcePenalties) or a broken sshd: journalctl -u ssh -n 20",
    )
