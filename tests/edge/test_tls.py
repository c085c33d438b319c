"""HTTPS over a host's SSH connection: a channel of it stands in for a socket."""

from __future__ import annotations

import datetime
import http.server
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from bringup.core.errors import Unreachable
from bringup.edge.chat import chat
from bringup.edge.http import ask, direct
from bringup.edge.ssh_dial import dialer
from tests.fleet.sshd import Sshd

from .reaching import reach

BODY = b"seen " * 100_000


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(BODY)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        for text in ("Hel", "lo"):
            self.wfile.write(b'data: {"choices":[{"delta":{"content":"%s"}}]}\n\n' % text.encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@dataclass(frozen=True)
class Secure:
    url: str
    certificate: Path

    @property
    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.certificate))


def self_signed(folder: Path) -> tuple[Path, Path]:
    """Write a certificate for 127.0.0.1 that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "frontend")])
    now = datetime.datetime.now(datetime.UTC)
    place = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(place, critical=False).sign(key, hashes.SHA256())
    )  # fmt: skip
    certificate, private = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate, private


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    certificate, private = self_signed(tmp_path_factory.mktemp("tls"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, private)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Secure(f"https://127.0.0.1:{server.server_address[1]}", certificate)
    server.shutdown()
    server.server_close()


def test_an_answer_larger_than_a_record_comes_whole_through_the_host(
    sshd: Sshd, secure: Secure
) -> None:
    with reach(sshd.host(), sshd.known_hosts) as remote:
        answer = ask(secure.url, seconds=30, opener=dialer(remote), tls=secure.context)
    assert answer.body == BODY


def test_a_socket_and_a_channel_refuse_the_same_unknown_authority(
    sshd: Sshd, secure: Secure
) -> None:
    with reach(sshd.host(), sshd.known_hosts) as remote:
        for opener in (direct, dialer(remote)):
            with pytest.raises(Unreachable, match=r"CERTIFICATE_VERIFY_FAILED|self-signed"):
                ask(secure.url, seconds=30, opener=opener)


def test_a_chat_over_https_is_streamed_under_tls(
    sshd: Sshd, secure: Secure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(secure.certificate))
    with reach(sshd.host(), sshd.known_hosts) as remote:
        told = chat(secure.url, {"stream": True}, seconds=30, opener=dialer(remote))
    assert (told.status, told.text, told.error) == (200, "Hello", "")
