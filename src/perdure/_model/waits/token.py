"""The token of a callback: unguessable, good for one answer; only its hash is ever stored.

    prd-cb-<uid of the task>-<43 characters of chance>

The uid says which task is meant, so that a token can be taken to the right place; it opens nothing.
"""

from __future__ import annotations

import hashlib
import re

_TOKEN = r"prd-cb-([0-9a-v]{24})-([A-Za-z0-9_-]{43})"


def new_token(uid: str) -> str:
    import secrets  # few tasks wait for a callback

    return f"prd-cb-{uid}-{secrets.token_urlsafe(32)}"


def hash_of_token(token: str) -> str | None:
    """The stored hash of a token; None if the text is not a token."""
    return hashlib.sha256(token.encode()).hexdigest() if re.fullmatch(_TOKEN, token) else None


def task_of_token(token: str) -> str | None:
    found = re.fullmatch(_TOKEN, token)
    return found.group(1) if found else None
