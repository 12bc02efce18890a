"""The values this process knows to be secret, because it fetched or filtered them; and a text without any secret.

A known value is replaced by its reference wherever it occurs, also base64- or URL-encoded. `redact` adds the search by
form (secret_forms.py), so that text leaving this process for a person is cleaned in one place.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from perdure._ground.secrets.secret_forms import HIDDEN, IN_ADDRESS, hide_forms, is_telling

# Shorter values are too common to be replaced everywhere: "a" is in every word.
_SHORTEST = 6

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
    """The text without secrets: known ones become their reference, those with a secret's form become [secret]."""
    return hide_forms(hide_known(text))


def redact_value(value: object) -> Any:
    """A JSON-like value without secrets; a value under a telling key is hidden whole."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: _under(str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact_value(item) for item in value]
    return value


def _under(key: str, item: object) -> Any:
    if isinstance(item, str) and item and is_telling(key) and not item.startswith("secret://"):
        return HIDDEN
    return redact_value(item)


def hide_known(text: str) -> str:
    """The text with every known value replaced by its reference."""
    with _mutex:
        known = sorted(_known.items(), key=lambda one: len(one[0]), reverse=True)
    for value, reference in known:
        if value in text:
            text = text.replace(value, reference)
    return text


def is_known(value: str) -> bool:
    """True if exactly this value is known to be secret."""
    return value in _known


def known_in(data: bytes) -> list[str]:
    """The references of known secrets whose value occurs in these bytes."""
    with _mutex:
        known = list(_known.items())
    return sorted({reference for value, reference in known if value.encode(errors="surrogateescape") in data})


def forget_all() -> None:
    """For tests: nothing is known any more."""
    with _mutex:
        _known.clear()
