"""Find the statements by which a driver would end a transaction that was open before it connected. Pure.

Drivers and their pools roll back, reset and discard by themselves. Inside a kept transaction that would throw away
work that is not theirs, so it is refused (session.py). COMMIT is let through.

A statement is read as the server reads it: token by token, so that comments, quotes and several statements in one
query neither hide such a statement nor look like one. A client may roll back to savepoints of its own. Statements
that were parsed under a name are judged again when they are bound and executed, as the transaction may have changed in
between.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from perdure.keeper.pgproxy.protocol import wire

_QUERY, _PARSE, _BIND, _EXECUTE, _CLOSE = b"QPBEC"
_MOST_TOKENS = 8  # by which a statement is known
_MOST_NAMES = 10_000  # of savepoints, statements and portals of one client

_UNLOCKS = "pg_advisory_unlock_all"
_RESETS = frozenset({"all", "role", "session"})  # session: RESET SESSION AUTHORIZATION
# Encodings in which a byte of a character can look like a backslash: quotes cannot be recognized by bytes.
_UNCLEAR = frozenset({"SJIS", "SHIFT_JIS_2004", "BIG5", "GBK", "UHC", "GB18030", "JOHAB"})
_SUSPICIOUS = re.compile(rb"ROLLBACK|ABORT|DISCARD|RESET|CLOSE|UNLISTEN|PREPARE|unlock_all", re.IGNORECASE)


class Guard:
    """The names one client has used, and whether its messages would end foreign work."""

    def __init__(self) -> None:
        self._savepoints: set[str] = set()
        self._parsed: dict[bytes, bool] = {}
        self._portals: dict[bytes, bool] = {}

    def would_end(self, kind: int, message: bytes, parameters: Mapping[str, str]) -> bool:
        """Take note of a client's message; whether it ends, or lets end, what was there before it.

        Raises:
            Broken: it is no message.
        """
        if kind == _QUERY:
            return self._judge(wire.text(message, 5)[0], parameters)
        if kind == _PARSE:
            name, at = wire.text(message, 5)
            self._parsed[name] = self._judge(wire.text(message, at)[0], parameters)
            self._keep_few()
            return self._parsed[name]
        if kind == _BIND:
            portal, at = wire.text(message, 5)
            self._portals[portal] = self._parsed.get(wire.text(message, at)[0], False)
            self._keep_few()
            return self._portals[portal]
        if kind == _EXECUTE:
            return self._portals.get(wire.text(message, 5)[0], False)
        if kind == _CLOSE:
            (self._parsed if message[5:6] == b"S" else self._portals).pop(wire.text(message, 6)[0], None)
        return False

    def _keep_few(self) -> None:
        if len(self._parsed) + len(self._portals) + len(self._savepoints) > _MOST_NAMES:
            raise wire.Broken("more names than a client may have")

    def _judge(self, sql: bytes, parameters: Mapping[str, str]) -> bool:
        if parameters.get("client_encoding", "UTF8").upper() in _UNCLEAR:
            return _SUSPICIOUS.search(sql) is not None
        backslashes = parameters.get("standard_conforming_strings", "on") == "off"
        before = set(self._savepoints)
        for statement in statements(sql, backslashes=backslashes):
            first = statement[0].word
            if first in ("commit", "end") and not _is(statement, 1, "prepared"):
                return False  # from here on the transaction is the client's own
            if self._ends(first, statement):
                self._savepoints = before  # it is refused as a whole
                return True
        return False

    def _ends(self, first: str, statement: list[Token]) -> bool:
        match first:
            case "rollback" | "abort":
                return self._rolls_back(statement)
            case "savepoint":
                self._savepoints.add(_name(statement, 1))
            case "release":
                self._savepoints.discard(_name(statement, 2 if _is(statement, 1, "savepoint") else 1))
            case "discard":
                return True
            case "reset":
                return len(statement) > 1 and statement[1].word in _RESETS
            case "close":
                return _is(statement, 1, "all")
            case "unlisten":
                return len(statement) > 1 and statement[1].text == "*"
            case "prepare" if _is(statement, 1, "transaction"):
                return True
        return any(
            token.text == _UNLOCKS and after.text == "("
            for token, after in pairwise(statement)
            if token.kind in ("word", "name")
        )

    def _rolls_back(self, statement: list[Token]) -> bool:
        at = 2 if len(statement) > 1 and statement[1].word in ("work", "transaction") else 1
        if _is(statement, 1, "prepared"):
            return False
        if not _is(statement, at, "to"):
            return True
        return _name(statement, at + (2 if _is(statement, at + 1, "savepoint") else 1)) not in self._savepoints


# ── reading statements ───────────────────────────────────────────────────────────────────────────


class Token(NamedTuple):
    kind: str  # word, name (quoted), string, or sign
    text: str  # words in lower case, as the server reads them

    @property
    def word(self) -> str:
        return self.text if self.kind == "word" else ""


def _is(statement: list[Token], at: int, word: str) -> bool:
    return at < len(statement) and statement[at].word == word


def _name(statement: list[Token], at: int) -> str:
    return statement[at].text if at < len(statement) else ""


def statements(sql: bytes, *, backslashes: bool = False) -> Iterator[list[Token]]:
    """The statements of a query, none of them empty, each as its first tokens and any that tells something later on.

    `backslashes`: they escape in plain strings too.

    A semicolon within brackets (a rule) or within BEGIN ATOMIC … END (a function) does not end a statement.
    """
    found: list[Token] = []
    before = Token("sign", ";")
    depth = atomic = 0
    for token in _tokens(sql, backslashes=backslashes):
        if token.text in "()" and token.kind == "sign":
            depth = max(depth + (1 if token.text == "(" else -1), 0)
        elif atomic and token.word in ("case", "end"):
            atomic += 1 if token.word == "case" else -1
        elif token.word == "atomic" and before.word == "begin" and found[0].word == "create":
            atomic += 1
        elif token.kind == "sign" and token.text == ";" and not depth and not atomic:
            if found:
                yield found
            found, before = [], token
            continue
        if len(found) < _MOST_TOKENS or _UNLOCKS in (token.text, before.text):
            found.append(token)
        before = token
    if found:
        yield found


_TOKEN = re.compile(
    rb"""
      (?P<space> [\ \t\n\r\f\v]+ | --[^\r\n]* )
    | (?P<comment> /\* )
    | (?P<escaped> [eE]' )
    | (?P<word> [A-Za-z_\x80-\xff][A-Za-z0-9_$\x80-\xff]* )
    | (?P<quote> ' )
    | (?P<name> "[^"]*(?:""[^"]*)*(?:"|\Z) )
    | (?P<dollar> \$(?:[A-Za-z_\x80-\xff][A-Za-z0-9_\x80-\xff]*)?\$ )
    | (?P<number> \$?[0-9][0-9A-Za-z_.]* )
    | (?P<sign> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(rb"/\*|\*/")
_PLAIN = re.compile(rb"[^']*(?:''[^']*)*")
_WITH_BACKSLASHES = re.compile(rb"[^'\\]*(?:(?:\\.|'')[^'\\]*)*", re.DOTALL)
# A string continues after white space with a line break in it, by the rules it began with.
_CONTINUED = re.compile(rb"'[ \t\f\v]*(?:--[^\r\n]*)?[\r\n](?:[ \t\n\r\f\v]|--[^\r\n]*[\r\n])*'")


def _tokens(sql: bytes, *, backslashes: bool) -> Iterator[Token]:
    at, end = 0, len(sql)
    while at < end:
        found = _TOKEN.match(sql, at)
        assert found is not None  # a sign is any byte
        kind, text = found.lastgroup, found[0]
        at = found.end()
        match kind:
            case "comment":
                at = _end_of_comment(sql, at)
            case "escaped":
                at = _end_of_string(sql, at, _WITH_BACKSLASHES)
                yield Token("string", "")
            case "quote":
                at = _end_of_string(sql, at, _WITH_BACKSLASHES if backslashes else _PLAIN)
                yield Token("string", "")
            case "dollar":
                closes = sql.find(text, at)
                at = end if closes < 0 else closes + len(text)
                yield Token("string", "")
            case "word":
                yield Token("word", _lower(text).decode("utf-8", "replace"))
            case "name":
                yield Token("name", text[1:].removesuffix(b'"').replace(b'""', b'"').decode("utf-8", "replace"))
            case "sign" | "number":
                yield Token("sign", text.decode("latin-1"))


def _lower(word: bytes) -> bytes:
    return word.lower()  # of bytes: only ASCII letters change, as in the server


def _end_of_comment(sql: bytes, at: int) -> int:
    depth = 1
    for edge in _COMMENT_EDGE.finditer(sql, at):
        depth += 1 if edge[0] == b"/*" else -1
        if not depth:
            return edge.end()
    return len(sql)


def _end_of_string(sql: bytes, at: int, inside: re.Pattern[bytes]) -> int:
    while True:
        found = inside.match(sql, at)
        assert found is not None  # it may be empty
        at = found.end()
        more = _CONTINUED.match(sql, at)
        if more is None:
            return at + 1
        at = more.end()
