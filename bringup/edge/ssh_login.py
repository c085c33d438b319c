"""Which keys speak for us, and logging in with them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from paramiko.agent import Agent, AgentKey, AgentSSH
from paramiko.pkey import PublicBlob, UnknownKeyType

from ..core.errors import Unreachable
from .ssh_config import Endpoint
from .ssh_flight import SocketAgent
from .ssh_keys import CERTIFICATE, fingerprint
from .ssh_said import home

SEARCHED = ("id_ed25519", "id_ecdsa", "id_rsa")
"""Key files in ~/.ssh that are tried when nobody named one, as ssh does."""


Fly: TypeAlias = Callable[[paramiko.PKey], paramiko.Channel | None]


@dataclass(frozen=True, slots=True)
class Identity:
    """One key to try, and what people call it."""

    key: paramiko.PKey
    source: str

    def __str__(self) -> str:
        blob = self.key.public_blob
        kind = "certificate " if blob and blob.key_type.endswith(CERTIFICATE) else ""
        return f"{kind}{self.source} ({fingerprint(self.key.asbytes())})"


class KeyRing:
    """Loads each key file once for the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[tuple[str, str], paramiko.PKey | str] = {}

    def key(self, path: str, certificate: str = "") -> paramiko.PKey | str:
        """Return the private key of a file, or why there is none."""
        with self._lock:
            if (path, certificate) not in self._files:
                self._files[path, certificate] = _load(path, certificate)
            return self._files[path, certificate]


def _load(path: str, certificate: str) -> paramiko.PKey | str:
    try:
        key = paramiko.PKey.from_path(path)
        key.public_blob = None
        if certificate:
            key.load_certificate(certificate)
    except OSError as error:
        return f"{error.filename or path}: {error.strerror}"
    except (paramiko.PasswordRequiredException, TypeError):
        return "passphrase"
    except (UnknownKeyType, UnsupportedAlgorithm, paramiko.SSHException, ValueError) as error:
        return f"{path}: {str(error) or 'not a private key'}"
    return key


@contextmanager
def identities(endpoint: Endpoint, ring: KeyRing) -> Iterator[tuple[list[Identity], list[str]]]:
    """Give the keys to try on an endpoint, in order, and what is wrong with others."""
    with ExitStack() as stack:
        keys = _Keys(endpoint, ring, stack)
        for path in endpoint.key_files:
            keys.add_file(path)
        if endpoint.agent or endpoint.search:
            keys.add_agent()
        for name in SEARCHED if endpoint.search else ():
            if (home() / ".ssh" / name).exists():
                keys.add_file(str(home() / ".ssh" / name))
        yield keys.found, keys.faults


class _Keys:
    """Gathers the keys to try, and what is wrong with others. The agent is asked when needed."""

    def __init__(self, endpoint: Endpoint, ring: KeyRing, stack: ExitStack) -> None:
        self.found: list[Identity] = []
        self.faults: list[str] = []
        self._endpoint = endpoint
        self._ring = ring
        self._stack = stack

    @cached_property
    def held(self) -> tuple[AgentKey, ...]:
        """The keys of the agent."""
        agent = self._stack.enter_context(_agent(self._endpoint))
        if agent is None and self._endpoint.agent:
            self.faults.append("no agent runs (SSH_AUTH_SOCK)")
        return agent.get_keys() if agent else ()

    def add_agent(self) -> None:
        self.found += [_from_agent(key) for key in self.held]
        if self._endpoint.agent and not self.found and not self.faults:
            self.faults.append("the agent holds no key (ssh-add -l)")

    def add_file(self, path: str) -> None:
        """Add a key file: with its certificates first, by the agent where it has a passphrase."""
        beside = f"{path}-cert.pub"
        for certificate in self._endpoint.certificate_files or (
            (beside,) if Path(beside).exists() else ()
        ):
            self._add(self._ring.key(path, certificate), path, certificate)
        self._add(self._ring.key(path), path, path)

    def _add(self, key: paramiko.PKey | str, path: str, source: str) -> None:
        if isinstance(key, paramiko.PKey):
            self.found.append(Identity(key, source))
        elif key != "passphrase":
            self.faults.append(key)
        elif source == path:
            self._add_locked(path)

    def _add_locked(self, path: str) -> None:
        same = [_from_agent(k) for k in self.held if k.asbytes() == _public_blob(path)]
        self.found += same
        if not same:
            self.faults.append(f"{path} has a passphrase, and no agent holds it (ssh-add {path})")


def _public_blob(path: str) -> bytes:
    with suppress(OSError, ValueError):
        return PublicBlob.from_file(f"{path}.pub").key_blob
    return b""


def _from_agent(key: AgentKey) -> Identity:
    """A certificate must be sent whole; paramiko's own agent key sends only the key inside it."""
    if key.get_name().endswith(CERTIFICATE):
        key.public_blob = PublicBlob(key.get_name(), key.blob)  # type: ignore[assignment]  # stub
    return Identity(key, f"agent key {key.comment or key.get_name()}")


@contextmanager
def _agent(endpoint: Endpoint) -> Iterator[AgentSSH | None]:
    """Give the agent of an endpoint, where one runs."""
    if endpoint.agent_socket == "none":
        yield None
        return
    agent: Agent | SocketAgent | None = None
    with suppress(OSError, paramiko.SSHException):
        if endpoint.agent_socket:
            agent = SocketAgent(endpoint.agent_socket)
        elif os.environ.get("SSH_AUTH_SOCK"):
            agent = Agent()
    try:
        yield agent
    finally:
        if agent is not None:
            agent.close()


def log_in(
    transport: paramiko.Transport, endpoint: Endpoint, ring: KeyRing, fly: Fly | None
) -> paramiko.Channel | None:
    """Log in with the first key that the server takes; raise Unreachable that names all tried.

    With one key to try, `fly` may log in and start a command at once: then return its channel.
    """
    with identities(endpoint, ring) as (keys, faults):
        if not keys:
            raise _no_key(endpoint, faults)
        if fly is not None and len(keys) == 1:
            return _take_off(fly, endpoint, keys[0])
        refused: list[str] = []
        for identity in keys:
            if _try(transport, endpoint, identity, refused):
                return None
            refused.append(str(identity))
        raise _refused(endpoint, refused, faults)


def _take_off(fly: Fly, endpoint: Endpoint, identity: Identity) -> paramiko.Channel | None:
    try:
        return fly(identity.key)
    except TimeoutError:
        raise _no_answer(endpoint) from None
    except (paramiko.SSHException, OSError, EOFError) as error:
        raise _cannot_sign(endpoint, identity, error) from error


def _try(
    transport: paramiko.Transport, endpoint: Endpoint, identity: Identity, refused: list[str]
) -> bool:
    """Return whether the server took a key; raise where no other key would fare better."""
    answered = threading.Event()
    try:
        transport.auth_publickey(endpoint.user, identity.key, answered)
    except paramiko.SSHException:
        answered.set()
    if not answered.wait(2 * endpoint.connect_s):
        raise _no_answer(endpoint)
    if transport.is_authenticated():
        return True
    trouble = transport.get_exception()
    if isinstance(trouble, paramiko.BadAuthenticationType):
        raise _login_fault(
            endpoint,
            f"the server takes {', '.join(trouble.allowed_types)} only",
            "allow keys there (PubkeyAuthentication, AuthenticationMethods)",
        )
    if isinstance(trouble, paramiko.ssh_exception.PartialAuthentication):
        raise _login_fault(
            endpoint,
            f"a key is not enough there ({trouble})",
            "allow this user keys alone (AuthenticationMethods in its sshd_config)",
        )
    if transport.is_active():
        return False
    if trouble is not None and not isinstance(trouble, EOFError | OSError):
        raise _cannot_sign(endpoint, identity, trouble)
    silence = str(getattr(transport.sock, "trouble", ""))
    if silence.startswith("nothing came"):
        raise _no_answer(endpoint, silence)
    raise _login_fault(
        endpoint,
        f"the server closed the line (tried {', '.join((*refused, str(identity)))})",
        "too many keys (MaxAuthTries)? name one: key_file: in the inventory."
        " On the host: journalctl -u ssh -n 20",
    )


def _cannot_sign(endpoint: Endpoint, identity: Identity, error: Exception) -> Unreachable:
    return _login_fault(
        endpoint,
        f"{identity} does not sign ({str(error) or type(error).__name__})",
        "see ssh-add -l, or try the key with ssh itself: ssh -v",
    )


def _login_fault(endpoint: Endpoint, why: str, remedy: str) -> Unreachable:
    return Unreachable(
        f"cannot log in to {endpoint.label} ({endpoint}): {why}",
        host=endpoint.label,
        remedy=remedy,
    )


def _no_answer(endpoint: Endpoint, silence: str = "") -> Unreachable:
    return _login_fault(
        endpoint,
        f"no answer ({silence})" if silence else f"no answer within {2 * endpoint.connect_s:g} s",
        "sshd hangs while it checks the login: DNS (UseDNS), PAM or a full disk are the usual"
        " causes; see its console",
    )


def _no_key(endpoint: Endpoint, faults: list[str]) -> Unreachable:
    return _login_fault(
        endpoint,
        "; ".join(faults) or "there is no key to try: no agent, no key in ~/.ssh",
        "set key_file: or agent: true for it in the inventory, or IdentityFile in ~/.ssh/config",
    )


def _refused(endpoint: Endpoint, refused: list[str], faults: list[str]) -> Unreachable:
    fault = _login_fault(
        endpoint,
        f"the server refused {', '.join(refused)}",
        f"see user: and key_file: for it in the inventory; the key's .pub line must stand in"
        f" ~{endpoint.user}/.ssh/authorized_keys there. On the host: journalctl -u ssh -n 20",
    )
    fault.said = "\n".join(faults)
    return fault
