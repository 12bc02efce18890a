"""Keep secrets out of what people and models read: logs, prompts, reports, bundles.

Two nets. Values this process knows to be secret (it fetched them, or filtered them out of an environment) are
replaced wherever they stand, also base64- or URL-encoded. And what looks like a secret by its form (tokens of known
makers, private keys, passwords in addresses and assignments) is replaced whether or not
anybody knew it. The forms are in perdure/_ground/secret_forms.py, the one list that all filters share.

The second net is a guess and has holes; the first has none for values of six characters and more.
"""

from __future__ import annotations

import base64
import logging
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from perdure._ground import secret_forms
from perdure._ground.secret_forms import IN_ADDRESS, hide_forms

# Shorter values are too common to be replaced everywhere: "a" is in every word.
_SHORTEST = 6
HIDDEN = secret_forms.HIDDEN

_known: dict[str, str] = {}
_mutex = threading.Lock()


def know(value: str, reference: str = HIDDEN) -> None:
    """Never show this value again in this process; its reference is shown instead."""
    if len(value) < _SHORTEST:
        return
    inside = IN_ADDRESS.search(value)
    if inside and inside[1] != value:
        know(unquote(inside[1]), reference)
    raw = value.encode(errors="surrogateescape")
    forms = {value, quote(value, safe=""), quote_plus(value), base64.b64encode(raw).decode().rstrip("=")}
    with _mutex:
        for form in forms:
            _known[form] = reference


def redact(text: str) -> str:
    """The text without secrets: known ones as their reference, those of a secret's form as [secret]."""
    return hide_forms(hide_known(text))


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
    return secret_forms.holds_a_token(data.decode("latin-1"))


def is_telling(name: str) -> bool:
    """Whether a name says that its value is secret."""
    return secret_forms.is_telling(name)


def looks_secret(value: str) -> bool:
    """Whether a value is known to be secret, or has the form of one."""
    return value in _known or secret_forms.looks_secret(value)


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
