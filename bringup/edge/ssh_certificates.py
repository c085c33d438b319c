"""Certificates of host keys: whether one is good for a name, now, by an authority that is known.

Format: PROTOCOL.certkeys of OpenSSH; the parsing is the cryptography library's.
"""

from __future__ import annotations

import base64
from collections.abc import Set as AbstractSet

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import SSHCertPublicKeyTypes

from .ssh_keys import HostKey, like


def fault_of(
    key: HostKey,
    name: str,
    *,
    authorities: AbstractSet[bytes],
    revoked: AbstractSet[bytes],
    now: float,
) -> str:
    """Return what is wrong with a host's certificate, or "" when it is to be trusted."""
    line = f"{key.kind} {base64.b64encode(key.blob).decode()}".encode()
    try:
        found = serialization.load_ssh_public_identity(line)
    except (ValueError, UnsupportedAlgorithm) as error:
        return f"its certificate cannot be read ({error})"
    if not isinstance(found, serialization.SSHCertificate):
        return "it offers a plain key as a certificate"
    if {_blob(found.signature_key()), _blob(found.public_key())} & revoked:
        return "its certificate, or the authority that signed it, is revoked"
    if _blob(found.signature_key()) not in authorities:
        return "its certificate is signed by an authority that known_hosts does not list"
    return _fault(found, name, now)


def _blob(key: SSHCertPublicKeyTypes) -> bytes:
    """Return a public key as known_hosts holds it."""
    text = key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return base64.b64decode(text.split()[1])


def _fault(certificate: serialization.SSHCertificate, name: str, now: float) -> str:
    try:
        certificate.verify_cert_signature()
    except InvalidSignature:
        return "the signature of its certificate is wrong"
    return _misfit(certificate, name, now)


def _misfit(certificate: serialization.SSHCertificate, name: str, now: float) -> str:
    if certificate.type is not serialization.SSHCertificateType.HOST:
        return "it offers a user's certificate"
    if not certificate.valid_after <= now < certificate.valid_before:
        return "its certificate has expired, or is not valid yet (see the clocks of both)"
    principals = [principal.decode() for principal in certificate.valid_principals]
    if principals and not any(like(name, principal) for principal in principals):
        return f"its certificate is for {', '.join(principals)}, not for {name}"
    if certificate.critical_options:
        return "its certificate has critical options that are not known here"
    return ""
