"""A PostgreSQL server that says what a test wants it to say at a login, and nothing true.

It runs in a thread; `told` is what became of each login. Its SCRAM is written apart from ours, and libpq itself is
asked beside us in test_proxy_login.py, so that a mistake on both sides does not cancel itself out.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import hmac
import os
import socket
import ssl
import struct
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

PASSWORD = "correct horse"
_TLS, _GSS = 80877103, 80877104


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def demand(number: int, rest: bytes = b"") -> bytes:
    return message(b"R", struct.pack("!I", number) + rest)


WELCOME = (
    demand(0)
    + message(b"S", b"server_version\x0018.0\0")
    + message(b"S", b"client_encoding\0UTF8\0")
    + message(b"S", b"standard_conforming_strings\0on\0")
    + message(b"K", struct.pack("!II", 4711, 42))
    + message(b"Z", b"I")
)


@dataclass(frozen=True)
class Script:
    """How the server behaves."""

    asks: str = "scram"  # trust, password, md5, scram, plus, gss, ready (skips authentication), twice
    proof: str = "right"  # or wrong, skipped
    tls: bool = False
    says: bytes = b""  # instead of all that, as soon as a client has come
    alpn: bool = True


class Peer:
    """One client at the server's end."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link

    def read(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            part = self.link.recv(size - len(found))
            if not part:
                raise ConnectionError
            found += part
        return found

    def startup(self) -> bytes:
        return self.read(struct.unpack("!I", self.read(4))[0] - 4)

    def answer(self) -> bytes:
        head = self.read(5)
        return self.read(struct.unpack("!I", head[1:])[0] - 4)


def speak(script: Script, link: socket.socket, context: ssl.SSLContext | None, cert: bytes) -> None:
    with contextlib.ExitStack() as opened:
        _speak(script, link, context, cert, opened)


def _speak(
    script: Script, link: socket.socket, context: ssl.SSLContext | None, cert: bytes, opened: contextlib.ExitStack
) -> None:
    peer = Peer(link)
    first = link.recv(1, socket.MSG_PEEK)
    if first == b"\x16" and context is not None:  # TLS at once
        peer = Peer(opened.enter_context(context.wrap_socket(link, server_side=True)))
    startup = peer.startup()
    while struct.unpack_from("!I", startup)[0] in (_TLS, _GSS):
        if struct.unpack_from("!I", startup)[0] == _TLS and context is not None:
            link.sendall(b"S")
            peer = Peer(opened.enter_context(context.wrap_socket(link, server_side=True)))
        else:
            link.sendall(b"N")
        startup = peer.startup()
    if script.says:
        peer.link.sendall(script.says)
        with contextlib.suppress(OSError):
            while peer.link.recv(4096):
                pass
        return
    _ASKS[script.asks](peer, script, cert)
    while peer.link.recv(4096):
        pass


def _trust(peer: Peer, _script: Script, _cert: bytes) -> None:
    peer.link.sendall(WELCOME)


def _ready(peer: Peer, _script: Script, _cert: bytes) -> None:
    peer.link.sendall(WELCOME[len(demand(0)) :])


def _password(peer: Peer, _script: Script, _cert: bytes) -> None:
    peer.link.sendall(demand(3))
    if peer.answer() == PASSWORD.encode() + b"\0":
        peer.link.sendall(WELCOME)


def _md5(peer: Peer, _script: Script, _cert: bytes) -> None:
    peer.link.sendall(demand(5, b"salt"))
    inner = hashlib.md5(PASSWORD.encode() + b"me").hexdigest()
    if peer.answer() == b"md5" + hashlib.md5(inner.encode() + b"salt").hexdigest().encode() + b"\0":
        peer.link.sendall(WELCOME)


def _gss(peer: Peer, _script: Script, _cert: bytes) -> None:
    peer.link.sendall(demand(7))
    peer.answer()
    peer.link.sendall(WELCOME)


def _twice(peer: Peer, script: Script, cert: bytes) -> None:
    """First SCRAM, then the password itself."""
    peer.link.sendall(demand(10, b"SCRAM-SHA-256\0\0"))
    peer.answer()
    _password(peer, script, cert)


def _scram(peer: Peer, script: Script, cert: bytes) -> None:
    mechanisms = b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0" if script.asks == "plus" else b"SCRAM-SHA-256\0\0"
    peer.link.sendall(demand(10, mechanisms))
    chosen, _, rest = peer.answer().partition(b"\0")
    client_first = rest[4:]
    flag, _, bare = client_first.partition(b",,")
    nonce = bare.partition(b"r=")[2] + b"theirs"
    salt = os.urandom(16)
    server_first = b"r=" + nonce + b",s=" + b64encode(salt) + b",i=4096"
    peer.link.sendall(demand(11, server_first))
    client_final = peer.answer()
    without_proof, _, proof = client_final.rpartition(b",p=")
    bound = b64decode(without_proof.partition(b"c=")[2].partition(b",")[0])
    if chosen == b"SCRAM-SHA-256-PLUS":
        assert flag == b"p=tls-server-end-point"
        assert bound == flag + b",," + hashlib.sha256(cert).digest(), "bound to another certificate"
    else:
        assert bound == flag + b",,"
        # A client that thinks there is no channel binding, while there is: somebody has taken it out of the offer.
        assert not (flag == b"y" and script.asks == "plus"), "a downgrade"
    salted = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), salt, 4096)
    key = hmac.digest(salted, b"Client Key", "sha256")
    signed = bare + b"," + server_first + b"," + without_proof
    signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
    assert b64decode(proof) == bytes(a ^ b for a, b in zip(key, signature, strict=True)), "a wrong password"
    ours = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), signed, "sha256")
    if script.proof != "skipped":
        peer.link.sendall(demand(12, b"v=" + b64encode(ours if script.proof == "right" else bytes(32))))
    peer.link.sendall(WELCOME)


_ASKS: dict[str, Callable[[Peer, Script, bytes], None]] = {
    "trust": _trust,
    "ready": _ready,
    "password": _password,
    "md5": _md5,
    "gss": _gss,
    "scram": _scram,
    "plus": _scram,
    "twice": _twice,
}


@contextlib.contextmanager
def serving(script: Script, keys: tuple[Path, Path] | None = None) -> Iterator[int]:
    """The port of a server that behaves so, until the block ends."""
    context, cert = None, b""
    if script.tls:
        assert keys is not None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*keys)
        if script.alpn:
            context.set_alpn_protocols(["postgresql"])
        cert = ssl.PEM_cert_to_DER_cert(keys[0].read_text())
    listener = socket.create_server(("127.0.0.1", 0))
    links: list[socket.socket] = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                link, _ = listener.accept()
                links.append(link)
                with contextlib.suppress(OSError, ssl.SSLError, AssertionError, struct.error, ValueError), link:
                    link.settimeout(20)
                    speak(script, link, context, cert)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        for link in (*links, listener):
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def make_certificate(folder: Path, name: str = "localhost") -> tuple[Path, Path]:
    """A certificate that signs itself, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    folder.mkdir(exist_ok=True)
    (folder / "cert.pem").write_bytes(made.public_bytes(pem))
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(private)
    (folder / "key.pem").chmod(0o600)
    return folder / "cert.pem", folder / "key.pem"
