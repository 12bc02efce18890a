"""TLS on the way to the server, as libpq's options ask for it.

Certificates are looked for where libpq looks: in the options, else in ~/.postgresql.
"""

from __future__ import annotations

import hashlib
import os
import socket
import ssl
from collections.abc import Callable, Mapping

from perdure.keeper.pgproxy.protocol import wire

_VERSIONS = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_PROTOCOL = "postgresql"  # by ALPN


class NotOffered(Exception):
    """The server does not offer TLS."""


class TlsFailed(Exception):
    """TLS cannot be had as it was asked for."""


def encrypt(link: socket.socket, options: Mapping[str, str], host: str) -> ssl.SSLSocket:
    """The same connection, encrypted. It is closed when that fails.

    Raises:
        NotOffered: the server says that it has no TLS.
        TlsFailed: the handshake failed, or a certificate or a file of ours does not meet the options.
    """
    try:
        context = _context(options)
        direct = options.get("sslnegotiation") == "direct"
        if direct:
            context.set_alpn_protocols([_PROTOCOL])
        else:
            _negotiate(link)
        name = None if options.get("sslsni") == "0" else host
        encrypted = context.wrap_socket(link, server_hostname=name)
        if direct and encrypted.selected_alpn_protocol() != _PROTOCOL:
            encrypted.close()
            raise TlsFailed("TLS: sslnegotiation=direct, and the server does not confirm that it speaks PostgreSQL")
    except ssl.SSLError as error:
        link.close()
        told = getattr(error, "verify_message", "") or error.reason or str(error)
        raise TlsFailed(f"TLS: {error.reason or 'failed'}: {told}") from None
    except BaseException:
        link.close()
        raise
    return encrypted


def _negotiate(link: socket.socket) -> None:
    link.sendall(wire.ask_for_tls())
    answer = link.recv(1)  # not a byte more: what follows has to be TLS
    if answer == b"N":
        raise NotOffered
    if not answer:
        raise ConnectionError("the server closed the connection")
    if answer != b"S":
        raise TlsFailed("TLS: the server answers neither yes nor no when it is asked for TLS")


def binding_of(link: socket.socket) -> bytes:
    """The data for channel binding: the hash of the server's certificate; b"" if there is none (RFC 5929)."""
    if not isinstance(link, ssl.SSLSocket):
        return b""
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    certificate = link.getpeercert(binary_form=True)
    if not certificate:
        return b""
    try:
        algorithm = x509.load_der_x509_certificate(certificate).signature_hash_algorithm
    except (ValueError, UnsupportedAlgorithm):
        return b""
    if algorithm is None:
        return b""
    weak = algorithm.name in ("md5", "sha1")
    return hashlib.new("sha256" if weak else algorithm.name, certificate).digest()


def _context(options: Mapping[str, str]) -> ssl.SSLContext:
    mode = options.get("sslmode") or "prefer"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = _VERSIONS[options.get("ssl_min_protocol_version") or "TLSv1.2"]
    if newest := options.get("ssl_max_protocol_version"):
        context.maximum_version = _VERSIONS[newest]
    root = options.get("sslrootcert") or _default("root.crt")
    # As in libpq: without a root certificate, `require` encrypts and trusts any server; with one it does not.
    verifies = mode.startswith("verify") or bool(root)
    context.check_hostname = mode == "verify-full"
    context.verify_mode = ssl.CERT_REQUIRED if verifies else ssl.CERT_NONE
    if not root and verifies:
        raise TlsFailed(f"TLS: sslmode={mode} needs a root certificate: name it as sslrootcert")
    if root == "system":
        context.load_default_certs()
    elif root:
        _load(root, lambda: context.load_verify_locations(root))
        _load_revoked(context, options)
    _load_own(context, options)
    return context


def _load_revoked(context: ssl.SSLContext, options: Mapping[str, str]) -> None:
    file, folder = options.get("sslcrl") or "", options.get("sslcrldir") or ""
    file = file or ("" if folder else _default("root.crl"))
    if file:
        _load(file, lambda: context.load_verify_locations(cafile=file))
    if folder:
        _load(folder, lambda: context.load_verify_locations(capath=folder))
    if file or folder:
        context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_CHAIN


def _load_own(context: ssl.SSLContext, options: Mapping[str, str]) -> None:
    """The certificate by which the server knows us."""
    certificate = options.get("sslcert") or _default("postgresql.crt")
    if not certificate or options.get("sslcertmode") == "disable":
        return
    key = options.get("sslkey") or _default("postgresql.key") or None
    # Without a password of ours OpenSSL would ask for one on the terminal.
    secret = options.get("sslpassword") or ""
    _load(certificate, lambda: context.load_cert_chain(certificate, key, lambda: secret))


def _default(name: str) -> str:
    path = os.path.expanduser(f"~/.postgresql/{name}")
    return path if os.path.exists(path) else ""


def _load(what: str, load: Callable[[], None]) -> None:
    try:
        load()
    except (OSError, ssl.SSLError) as error:
        raise TlsFailed(f"TLS: the certificate {what} cannot be used: {error}") from None
