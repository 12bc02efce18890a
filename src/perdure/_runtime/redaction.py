"""Keep secrets out of what people and models read: logs, prompts, reports, bundles.

Two nets. Values this process knows to be secret (it fetched them, or filtered them out of an environment) are
replaced wherever they stand, also base64- or URL-encoded. And what looks like a secret by its form (tokens of known
makers, private keys, passwords in addresses and assignments) is replaced whether or not anybody knew it.

The second net is a guess and has holes; the first has none for values of six characters and more.
"""

from __future__ import annotations

import base64
import logging
import math
import re
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, quote_plus, unquote

# Shorter values are too common to be replaced everywhere: "a" is in every word.
_SHORTEST = 6
HIDDEN = "[secret]"

_known: dict[str, str] = {}
_mutex = threading.Lock()

# By form: the makers' own prefixes first, then what stands behind a telling name.
_FORMS = re.compile(
    r"""
      -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----[\s\S]*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b
    | \bgh[pousr]_[A-Za-z0-9]{30,}\b | \bgithub_pat_[A-Za-z0-9_]{40,}\b
    | \bglpat-[A-Za-z0-9_-]{20,}
    | \bsk-[A-Za-z0-9_-]{20,} | \b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}
    | \bxox[abeoprs]-[A-Za-z0-9-]{10,}
    | \bAIza[0-9A-Za-z_-]{35}
    | \bnpm_[A-Za-z0-9]{30,}\b | \bpypi-[A-Za-z0-9_-]{50,}
    | \bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*
    """,
    re.VERBOSE,
)
# Every stretch is bounded, so that a megabyte of noise is searched in one go.
_BEHIND = re.compile(
    r"""(?ix)
    (?P<before>
        \b authorization ["']? \s{0,9} [:=] \s{0,9} ["']? (?: bearer | basic | token ) \s+
      | \b (?: set-)? cookie ["']? \s{0,9} : \s{0,9} [^=\s;]{1,60} =
      | :// [^\s/@:]{0,200} :                                             # user:password@ in an address
      | (?: passw(?:or)?d | passphrase | secret | token | credential | (?: api | access | private ) [_-]? key )
        [a-z0-9_.-]{0,40} ["']? \s{0,9} [:=]{1,2} \s{0,9} ["']?
    )
    (?P<value> [^\s"'@;,&]{4,} )
    (?P<after> @? )
    """
)
# The password of an address.
_IN_ADDRESS = re.compile(r"://[^\s/@:]*:([^\s/@]+)@")
_TELLING_NAME = re.compile(
    r"(?i)pass(word|wd|phrase)?($|_)|secret|token|credential|api_?key|access_?key|private_?key|_key$|^key$|_auth$|cookie"
)


def know(value: str, reference: str = HIDDEN) -> None:
    """Never show this value again in this process; its reference is shown instead."""
    if len(value) < _SHORTEST:
        return
    inside = _IN_ADDRESS.search(value)
    if inside and inside[1] != value:
        know(unquote(inside[1]), reference)
    raw = value.encode(errors="surrogateescape")
    forms = {value, quote(value, safe=""), quote_plus(value), base64.b64encode(raw).decode().rstrip("=")}
    with _mutex:
        for form in forms:
            _known[form] = reference


def redact(text: str) -> str:
    """The text without secrets: known ones as their reference, those of a secret's form as [secret]."""
    text = hide_known(text)
    text = _FORMS.sub(HIDDEN, text)
    return _BEHIND.sub(_hide_behind, text)


def _hide_behind(found: re.Match[str]) -> str:
    value, after = found["value"], found["after"]
    if "://" in found["before"] and not after:
        return found[0]  # a port or a path, not a password
    if value.startswith(("//", "secret:", HIDDEN, "$", "%", "<", "{")):
        return found[0]  # a reference or a placeholder
    return f"{found['before']}{HIDDEN}{after}"


def hide_known(text: str) -> str:
    for value in sorted(_known, key=len, reverse=True):
        if value in text:
            text = text.replace(value, _known[value])
    return text


def redact_value(value: Any) -> Any:
    """A JSON-like value without secrets; what stands under a telling key is hidden whole."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: _under(str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact_value(item) for item in value]
    return value


def _under(key: str, item: Any) -> Any:
    if isinstance(item, str) and item and is_telling(key) and not item.startswith("secret://"):
        return HIDDEN
    return redact_value(item)


def known_in(data: bytes) -> list[str]:
    """The references of known secrets whose value stands in these bytes."""
    with _mutex:
        known = list(_known.items())
    return sorted({reference for value, reference in known if value.encode(errors="surrogateescape") in data})


def holds_a_token(data: bytes) -> bool:
    """Whether something in these bytes has the form of a maker's token or of a private key."""
    return _FORMS.search(data.decode("latin-1")) is not None


def is_telling(name: str) -> bool:
    """Whether a name says that its value is secret."""
    return _TELLING_NAME.search(name) is not None


def looks_secret(value: str) -> bool:
    """Whether a value has the form of a secret: a maker's token, an address with a password, or long noise."""
    if value in _known or _FORMS.search(value):
        return True
    if _IN_ADDRESS.search(value):
        return True
    return _is_noise(value)


def _is_noise(value: str) -> bool:
    """Letters and digits without order, as a key has them; not a path, a list, a version or a sentence."""
    if not 20 <= len(value) <= 512 or not re.fullmatch(r"[A-Za-z0-9+/=_-]+", value):
        return False
    if value.count("/") > 2 and not re.search(r"\d", value):
        return False
    kinds = sum(bool(re.search(kind, value)) for kind in ("[a-z]", "[A-Z]", "[0-9]"))
    counts = Counter(value)
    entropy = -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
    return kinds == 3 and entropy >= 4.0


class RedactingFilter(logging.Filter):
    """A filter for any log handler: what passes it is redacted."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        clean = redact(message)
        if clean != message:
            record.msg, record.args = clean, ()
        return True


def forget_all() -> None:
    """For tests: nothing is known any more."""
    with _mutex:
        _known.clear()
