"""Key and certificate of this installation, made once; a browser asks once whether to trust it."""

import datetime
import ipaddress
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_DAYS = 397
"""Browsers take no certificate that lasts longer."""


def certificate(folder: Path, names: Iterable[str]) -> tuple[Path, Path]:
    """Return the files of certificate and key, PEM; made anew where there are none, they run out, or lack a name.

    Args:
        folder: Where they are kept, readable by this user alone.
        names: Names and addresses of the server.
    """
    key_file, certificate_file = folder / "key.pem", folder / "certificate.pem"
    wanted = sorted({name.strip("[]") for name in names})
    if not (key_file.is_file() and _serves(certificate_file, wanted)):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make(key_file, certificate_file, wanted)
    return certificate_file, key_file


def _serves(file: Path, names: list[str]) -> bool:
    from cryptography import x509

    with suppress(OSError, ValueError, x509.ExtensionNotFound):
        one = x509.load_pem_x509_certificate(file.read_bytes())
        told = one.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        ends = one.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
        return {str(name.value) for name in told} >= set(names) and ends > datetime.timedelta(days=7)
    return False


def _make(key_file: Path, certificate_file: Path, names: list[str]) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Softform console")])
    told: list[x509.GeneralName] = []
    for name in names:
        try:
            told.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            told.append(x509.DNSName(name))
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName(told), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    key_file.unlink(missing_ok=True)
    with os.fdopen(os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secret)
    certificate_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
