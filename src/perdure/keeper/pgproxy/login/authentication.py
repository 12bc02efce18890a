"""Log in to a server, and have it prove who it is. Pure: bytes in, bytes out.

A server asks in turn (`answer`) and says at last that all is well. That is believed only when `require_auth` and
`channel_binding` are satisfied, and, where SCRAM was begun, only after the server has proved that it knows the
password too: otherwise an impostor could answer in its place.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from perdure.keeper.pgproxy.login import scram
from perdure.keeper.pgproxy.login.options import Methods
from perdure.keeper.pgproxy.protocol import wire

_OK, _CLEARTEXT, _MD5, _SASL, _SASL_CONTINUE, _SASL_FINAL = 0, 3, 5, 10, 11, 12
_NAMES = {
    2: "Kerberos 5",
    _CLEARTEXT: "password",
    _MD5: "md5",
    6: "SCM credentials",
    7: "gss",
    8: "gss",
    9: "sspi",
    _SASL: "scram-sha-256",
}
_PLAIN, _BOUND = b"SCRAM-SHA-256", b"SCRAM-SHA-256-PLUS"
_MOST_MECHANISMS = 16


class LoginRefused(Exception):
    """The login cannot go on; `code` is an SQLSTATE or a word for programs."""

    def __init__(self, why: str, code: str = "auth") -> None:
        self.code = code
        super().__init__(why)


class Authentication:
    """One login. `binding`: what channel binding binds to, b"" where the connection has nothing to bind to."""

    def __init__(self, options: Mapping[str, str], *, encrypted: bool, binding: bytes = b"") -> None:
        self._user, self._password = options["user"], options.get("password") or ""
        self._methods = Methods.of(options.get("require_auth", ""))
        self._binds = options.get("channel_binding") or "prefer"
        self._encrypted, self._binding = encrypted, binding
        self._begun = ""  # the method that was asked for
        self._scram: scram.Scram | None = None
        self._is_bound = False
        self._is_answered = False  # nothing more is expected from us, and no proof from the server
        self.is_complete = False

    def answer(self, body: bytes) -> bytes | None:
        """The answer to a demand; None if there is none.

        Raises:
            LoginRefused: the demand must not be met, or the server has not done its part.
            Broken: it is not a demand.
        """
        demand, rest = wire.number(body), body[4:]
        if self.is_complete:
            raise LoginRefused("the server continued authentication after it had accepted the login")
        try:
            match demand:
                case 0:
                    self._accepted()
                    return None
                case 11:
                    return self._continue(rest)
                case 12:
                    self._finish(rest)
                    return None
                case _:
                    return self._begin(demand, rest)
        except scram.ProofRefused as problem:
            raise LoginRefused(str(problem)) from None

    def _begin(self, demand: int, rest: bytes) -> bytes:
        name = _NAMES.get(demand, f"kind {demand}")
        if self._begun:
            raise LoginRefused(f"the server asks for {name} after it had asked for {self._begun}")
        self._begun = name
        if demand not in (_CLEARTEXT, _MD5, _SASL):
            raise LoginRefused(f"the server asks for authentication by {name}, which a kept session does not have")
        if name not in self._methods.allowed:
            raise LoginRefused(f"require_auth={self._methods.words} does not allow what the server asks for: {name}")
        if demand != _SASL and self._binds == "require":
            raise LoginRefused(f"channel_binding=require does not allow what the server asks for: {name}")
        first = self._choose(rest) if demand == _SASL else b""
        if not self._password:
            raise LoginRefused("the server asks for a password and none was given", "28P01")
        if demand == _SASL:
            return first
        self._is_answered = True
        if demand == _CLEARTEXT:
            return self._password.encode() + b"\0"
        if len(rest) < 4:
            raise wire.Broken("an md5 demand without its salt")
        return scram.md5(self._user, self._password, rest[:4])

    # ── SCRAM ───────────────────────────────────────────────────────────────────────────────────

    def _choose(self, rest: bytes) -> bytes:
        """Choose the strongest mechanism both sides have, and begin it."""
        offered = [name for name in rest.split(b"\0", _MOST_MECHANISMS)[:_MOST_MECHANISMS] if name]
        if _BOUND in offered and not self._encrypted:
            raise LoginRefused(
                "the server offers channel binding on a connection without TLS: another machine may be in between"
            )
        can_bind = self._encrypted and bool(self._binding) and self._binds != "disable"
        if _BOUND in offered and can_bind:
            self._is_bound = True
            channel, mechanism = scram.bound_to(self._binding), _BOUND
        elif self._binds == "require":
            raise LoginRefused(self._why_unbound())
        elif _PLAIN in offered:
            # A server that does offer channel binding learns from this that its offer did not arrive.
            channel, mechanism = (scram.NOT_OFFERED if can_bind else scram.UNBOUND), _PLAIN
        else:
            told = ", ".join(name[:40].decode("ascii", "replace") for name in offered) or "nothing"
            raise LoginRefused(f"the server offers {told}, and a kept session has SCRAM-SHA-256")
        self._scram = scram.Scram(self._password, os.urandom(18), channel=channel)
        first = self._scram.first()
        return mechanism + b"\0" + wire.LENGTH.pack(len(first)) + first

    def _why_unbound(self) -> str:
        if not self._encrypted:
            return "channel_binding=require needs TLS, and this connection has none"
        if not self._binding:
            return "channel_binding=require: the server's certificate has no hash to bind to"
        return "channel_binding=require, and the server does not offer it"

    def _continue(self, rest: bytes) -> bytes:
        if self._scram is None or self._is_answered:
            raise LoginRefused("the server continued an exchange that was not begun")
        return self._scram.final(rest)

    def _finish(self, rest: bytes) -> None:
        if self._scram is None or self._is_answered:
            raise LoginRefused("the server ends an exchange that was not begun")
        self._scram.check(rest)
        self._is_answered = True

    # ── the end ─────────────────────────────────────────────────────────────────────────────────

    def _accepted(self) -> None:
        if self._begun and not self._is_answered:
            raise LoginRefused("the server accepts the login without proving that it knows the password")
        if not self._begun and "none" not in self._methods.allowed:
            raise LoginRefused(f"require_auth={self._methods.words}, and the server asks for no authentication at all")
        if self._binds == "require" and not self._is_bound:
            raise LoginRefused("channel_binding=require, and the server accepts the login without it")
        self.is_complete = True
