"""Certificates of host keys: whether one is good for a name, now, by an authority that is known.

Format: PROTOCOL.certkeys of OpenSSH; the parsing is the cryptography library's.
"""

from __future__ import annotations

import base64
from collections.abc import Set as AbstractSet

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from .ssh_keys import like


def fault_of(kind: str, blob: bytes, name: str, authorities: AbstractSet[bytes], now: float) -> str:
    """Return what is wrong with a host's certificate, or "" when it is to be trusted."""
    line = f"{kind} {base64.b64encode(blob).decode()}".encode()
    try:
        found = serialization.load_ssh_public_identity(line)
    except (ValueError, UnsupportedAlgorithm) as error:
        return f"its certificate cannot be read ({error})"
    if not isinstance(found, serialization.SSHCertificate):
        return "it offers a plain key as a certificate"
    return _fault(found, name, authorities, now)


def _fault(
    certificate: serialization.SSHCertificate,
    name: str,
    authorities: AbstractSet[bytes],
    now: float,
) -> str:
    authority = certificate.signature_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    if base64.b64decode(authority.split()[1]) not in authorities:
        return "its certificate is signed by an authority that known_hosts does not list"
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
