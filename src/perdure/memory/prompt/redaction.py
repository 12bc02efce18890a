"""Keep secrets out of prompts. What is stored stays as it is; what a model reads has none.

Known secrets, and texts with the form of a secret, are hidden everywhere. Under a telling name (password, token, api
key, …) the whole text is hidden. How they are found is in perdure/_runtime/secrets/redaction.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from perdure._runtime import redact

HIDDEN = "[secret]"
# Fewer names than those that make an environment variable secret: a model must still read its sort_key.
_NAME = re.compile(r"(?i)passw|passphrase|secret|token$|credential|(api|access|private)[_-]?key|cookie|authorization")


def clean(value: Any, name: str = "") -> Any:
    """The JSON-like value with its secrets hidden; `name` is its key."""
    if isinstance(value, str):
        if value and _NAME.search(name) and not value.startswith("secret://"):
            return HIDDEN
        return redact(value)
    if isinstance(value, Mapping):
        return {redact(str(key)): clean(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item, name) for item in value]
    return value
