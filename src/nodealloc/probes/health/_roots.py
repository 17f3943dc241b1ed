"""Whether a bundle of certificates can be read by whoever is to trust them."""

from __future__ import annotations

import binascii
import re
import ssl
from typing import Final

from nodealloc._attrs import Attribute
from nodealloc.errors import ConfigurationError

__all__ = ["check_roots"]

_BEGIN: Final = re.compile(rb"^-----BEGIN ((?:X509 |TRUSTED )?CERTIFICATE)-----[ \t]*\r?$", re.MULTILINE)
_PLAIN: Final = (b"CERTIFICATE", b"X509 CERTIFICATE")
"""What is a certificate and nothing else; a trusted one has OpenSSL's own words behind it."""
_EXPECTED: Final = 'certificates in PEM, each from a line "-----BEGIN CERTIFICATE-----" to one "-----END …"'


def check_roots(owner: object, _field: Attribute[bytes | None], roots: bytes | None) -> None:
    """Whether each certificate of a bundle can be read: a validator.

    gRPC itself trusts those before the first one that it cannot read, and says nothing; where it can
    read none, or there is nothing at all, every question fails as if the container were not well.

    Raises:
        ConfigurationError: There is none in it, or one of them is broken; says which.
    """
    if roots is None:
        return
    where = f"{type(owner).__name__}: roots"
    found = list(_BEGIN.finditer(roots))
    if not found:
        raise ConfigurationError(f"{where}: {len(roots)} bytes without a certificate; expected {_EXPECTED}")
    ends = [one.start() for one in found[1:]] + [len(roots)]
    for number, (one, ends_at) in enumerate(zip(found, ends, strict=True), 1):
        fault = _fault(roots[one.end() : ends_at], one[1])
        if fault:
            line = roots.count(b"\n", 0, one.start()) + 1
            raise ConfigurationError(
                f"{where}: certificate {number} of {len(found)}, from line {line} on, {fault}; "
                "write it whole, or take it away"
            )


def _fault(rest: bytes, kind: bytes) -> str:
    """What is wrong with a certificate, of which this comes after its first line; "" for nothing."""
    body, end, _ = rest.partition(b"-----END " + kind + b"-----")
    if not end:
        return f'has no line "-----END {kind.decode()}-----"'
    try:
        data = binascii.a2b_base64(b"".join(body.split()), strict_mode=True)
    except binascii.Error as error:
        return f"is no base64 ({error})"
    if kind not in _PLAIN:
        return ""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=data)
    except (ssl.SSLError, ValueError) as error:
        reason = error.reason if isinstance(error, ssl.SSLError) else str(error)
        return f"cannot be read ({reason})"
    return ""
