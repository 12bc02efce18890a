"""The libpq options that a kept session honours, and those it refuses. Pure.

Options have libpq's names and meanings. An option that cannot be honoured is refused in words, and so is an unknown
one: leaving out `require_auth` or `sslcrl` silently would open what the user has closed. Where libpq is lenient for
old servers' sake (a handshake that fails under `sslmode=prefer`, a SCRAM exchange without the server's proof) a kept
session refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Which ways are tried, in their order: True is encrypted.
SSL_MODES: dict[str, tuple[bool, ...]] = {
    "disable": (False,),
    "allow": (False, True),
    "prefer": (True, False),
    "require": (True,),
    "verify-ca": (True,),
    "verify-full": (True,),
}
_STRONG = ("require", "verify-ca", "verify-full")

_HONOURED = frozenset(
    {
        *("user", "password", "dbname", "host", "hostaddr", "port", "connect_timeout", "load_balance_hosts"),
        *("client_encoding", "options", "application_name", "fallback_application_name", "target_session_attrs"),
        *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"),
        *("sslmode", "sslnegotiation", "sslcert", "sslkey", "sslpassword", "sslcertmode", "sslcompression"),
        *("sslrootcert", "sslcrl", "sslcrldir", "sslsni", "ssl_min_protocol_version", "ssl_max_protocol_version"),
        *("require_auth", "channel_binding", "requirepeer", "gssencmode", "min_protocol_version"),
        *("max_protocol_version", "patience"),
    }
)
# Read before the options get here, or used only by an authentication that is refused when a server asks for it.
_WITHOUT_MEANING = frozenset({"passfile", "krbsrvname", "gsslib", "gssdelegation"})
_CHOICES: dict[str, frozenset[str]] = {
    "sslmode": frozenset(SSL_MODES),
    "sslnegotiation": frozenset({"postgres", "direct"}),
    "sslcertmode": frozenset({"disable", "allow"}),
    "sslcompression": frozenset({"0"}),
    "sslsni": frozenset({"0", "1"}),
    "gssencmode": frozenset({"disable", "prefer"}),
    "channel_binding": frozenset({"disable", "prefer", "require"}),
    "load_balance_hosts": frozenset({"disable", "random"}),
    "min_protocol_version": frozenset({"3.0"}),
    "max_protocol_version": frozenset({"3.0", "3.2", "latest"}),
    "ssl_min_protocol_version": frozenset({"TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"}),
    "ssl_max_protocol_version": frozenset({"TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"}),
    "target_session_attrs": frozenset({"any", "read-write", "read-only", "primary", "standby", "prefer-standby"}),
}
_METHODS = frozenset({"password", "md5", "gss", "sspi", "scram-sha-256", "oauth", "none"})


class OptionRefused(Exception):
    """An option that cannot be honoured; the words name it."""


def check(options: Mapping[str, str]) -> None:
    """Raises:
    OptionRefused: one of them cannot be honoured, or two contradict each other.
    """
    for name, value in options.items():
        if name in _WITHOUT_MEANING or not value:
            continue
        if name == "service":
            raise OptionRefused("service= is not read for a kept session; write its options into the address")
        if name not in _HONOURED:
            raise OptionRefused(f"{name}= cannot be honoured by a kept session; leave it out")
        if name in _CHOICES and value not in _CHOICES[name]:
            known = ", ".join(sorted(_CHOICES[name]))
            raise OptionRefused(f"{name}={value} cannot be honoured by a kept session, only {known}")
    if not options.get("user"):
        raise OptionRefused("no user is named")
    _check_tls(options)
    Methods.of(options.get("require_auth", ""))


def _check_tls(options: Mapping[str, str]) -> None:
    mode = options.get("sslmode") or "prefer"
    if options.get("sslrootcert") == "system" and mode != "verify-full":
        raise OptionRefused(f"sslrootcert=system goes with sslmode=verify-full, not with {mode}")
    if options.get("sslnegotiation") == "direct" and mode not in _STRONG:
        raise OptionRefused(f"sslnegotiation=direct goes with sslmode=require or stronger, not with {mode}")
    if mode == "verify-full" and options.get("hostaddr") and not options.get("host"):
        raise OptionRefused("sslmode=verify-full checks the host's name, and only hostaddr is given; add host")
    if mode == "verify-full" and options.get("sslsni") == "0":
        raise OptionRefused("sslsni=0 cannot be honoured together with sslmode=verify-full")


@dataclass(frozen=True)
class Methods:
    """The authentication that `require_auth` allows. `none`: the server asks for nothing."""

    allowed: frozenset[str]
    words: str = ""  # as the user wrote them

    @classmethod
    def of(cls, words: str) -> Methods:
        """Raises:
        OptionRefused: a method is not known, is named twice, or some are forbidden and others allowed.
        """
        if not words:
            return cls(_METHODS)
        parts = [part.strip() for part in words.split(",")]
        forbids = [part.startswith("!") for part in parts]
        names = [part.removeprefix("!") for part in parts]
        if unknown := [name for name in names if name not in _METHODS]:
            raise OptionRefused(f"require_auth={words}: {unknown[0]!r} is not a method of authentication")
        if len(set(forbids)) > 1:
            raise OptionRefused(f"require_auth={words} forbids some methods and allows others; do one of them")
        if len(set(names)) < len(names):
            raise OptionRefused(f"require_auth={words} names a method twice")
        return cls(_METHODS - set(names) if forbids[0] else frozenset(names), words)
