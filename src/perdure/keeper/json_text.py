"""JSON, written by an encoder that is made once. Standard library only: small children use it too."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def _writer() -> Callable[[Any], str]:
    """As JSONEncoder.encode, which would make a new compiled encoder each time it is called."""
    plain = json.JSONEncoder(separators=(",", ":"))
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return plain.encode
    ascii = json.encoder.encode_basestring_ascii
    compiled = make(None, plain.default, ascii, None, plain.key_separator, plain.item_separator, False, False, True)
    return lambda value: "".join(compiled(value, 0))


to_json = _writer()
