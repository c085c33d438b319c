"""Keys for one run: made in memory, never kept, worth nothing when the run has ended."""

from __future__ import annotations

from dataclasses import dataclass, field

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec


@dataclass(frozen=True, slots=True)
class OneOffKey:
    """A key pair: the private part as OpenSSH reads it, the public line."""

    private: bytes = field(repr=False)
    public: str


def one_off_key() -> OneOffKey:
    """Return a new key on P-256, which every OpenSSH takes, also under FIPS rules."""
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return OneOffKey(private, public.decode())
