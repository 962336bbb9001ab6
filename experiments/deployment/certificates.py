"""Certificates and keys for a trial: an authority, TLS certificates, and keys of nodes."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, GeneralName, Name

DAYS = 365
LOOPBACK = ("localhost", "127.0.0.1")


def write_private(path: Path, content: bytes) -> None:
    """Write a file that its owner alone can read.

    Args:
        path: of the file.
        content: of the file.
    """
    path.touch(mode=0o600)
    path.write_bytes(content)


@dataclass(frozen=True, eq=False)
class Authority:
    """A certificate authority of its own, valid for a year.

    Attributes:
        key: its private key.
        certificate: that clients of its certificates trust.
    """

    key: EllipticCurvePrivateKey
    certificate: Certificate

    @classmethod
    def new(cls) -> Authority:
        """An authority with a new key."""
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("bcfl trial authority")
        return cls(key, _certificate(name, key, name, key, hosts=None))

    def write(self, folder: Path) -> None:
        """Write `ca.crt` and `ca.key`.

        Args:
            folder: that is there.
        """
        (folder / "ca.crt").write_bytes(_pem(self.certificate))
        write_private(folder / "ca.key", _key_pem(self.key))

    def issue(self, folder: Path, name: str, hosts: Sequence[str]) -> None:
        """Write a TLS certificate as `NAME.crt` with its `NAME.key`, and `ca.crt`.

        Args:
            folder: that is there.
            name: of the files.
            hosts: names and addresses that the certificate is for.
        """
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        issued = _certificate(_name(name), key, self.certificate.subject, self.key, hosts)
        (folder / f"{name}.crt").write_bytes(_pem(issued))
        write_private(folder / f"{name}.key", _key_pem(key))
        (folder / "ca.crt").write_bytes(_pem(self.certificate))


def write_node_key(folder: Path) -> None:
    """Write the key by which a node is known, as `node` and `node.pub` of OpenSSH (ECDSA P-384).

    Args:
        folder: that is there.
    """
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP384R1())
    private = key.private_bytes(
        forms.Encoding.PEM, forms.PrivateFormat.OpenSSH, forms.NoEncryption()
    )
    write_private(folder / "node", private)
    public = key.public_key().public_bytes(forms.Encoding.OpenSSH, forms.PublicFormat.OpenSSH)
    (folder / "node.pub").write_bytes(public + b"\n")


def _certificate(
    subject: Name,
    key: EllipticCurvePrivateKey,
    issuer: Name,
    signer: EllipticCurvePrivateKey,
    hosts: Sequence[str] | None,
) -> Certificate:
    """A certificate for hosts, or of an authority where `hosts` is None."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=DAYS))
        .add_extension(x509.BasicConstraints(ca=hosts is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    if hosts is not None:
        names = x509.SubjectAlternativeName([_host(host) for host in dict.fromkeys(hosts)])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(signer, hashes.SHA256())


def _name(common: str) -> Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _host(host: str) -> GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    encoded: bytes = certificate.public_bytes(Encoding.PEM)
    return encoded


def _key_pem(key: EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization as forms

    encoded: bytes = key.private_bytes(
        forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption()
    )
    return encoded
