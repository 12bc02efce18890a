"""Signatures of Standard Webhooks 1.0: who sent a message, and that it was not changed. Pure.

    webhook-id, webhook-timestamp, webhook-signature: v1,<base64 of HMAC-SHA256 over id.timestamp.body>

A secret is `whsec_` and the base64 of its bytes. While a secret is being replaced a message carries one signature for
each; a receiver takes a message when one of them is good.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from hashlib import sha256

from perdure.errors import InvalidInput

PREFIX = "whsec_"
TOLERANCE = 300  # seconds a receiver's clock may be off
_FEWEST, _MOST = 24, 64  # bytes of a secret


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def key_of(secret: str) -> bytes:
    """The bytes of a secret.

    Raises:
        InvalidInput: it is not a secret; the message does not repeat it.
    """
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not _FEWEST <= len(key) <= _MOST:
        raise InvalidInput(
            "the secret of a webhook is not valid", do=f"use {PREFIX} and the base64 of {_FEWEST} to {_MOST} bytes"
        )
    return key


def sign(secrets: Sequence[str], id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The three headers of a message; one signature for each secret."""
    signatures = " ".join(f"v1,{_signature(secret, id, str(timestamp), body)}" for secret in secrets)
    return {"webhook-id": id, "webhook-timestamp": str(timestamp), "webhook-signature": signatures}


def is_signed(secrets: Sequence[str], headers: Mapping[str, str], body: bytes, now: float) -> bool:
    """True if a message was signed with one of these secrets, recently enough. Header names are in lower case."""
    id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    given = headers.get("webhook-signature", "")
    if not id or not re.fullmatch(r"[0-9]{1,12}", timestamp) or abs(now - int(timestamp)) > TOLERANCE:
        return False
    if not all(part.isascii() for part in (id, given)) or len(given) > 4096:
        return False
    wanted = [_signature(secret, id, timestamp, body) for secret in secrets]
    offered = [part[3:] for part in given.split(" ") if part.startswith("v1,")]
    # Every pair is compared, so that the time tells nothing about which one fits.
    return sum(hmac.compare_digest(one, other) for one in wanted for other in offered) > 0


def _signature(secret: str, id: str, timestamp: str, body: bytes) -> str:
    message = b".".join((id.encode(), timestamp.encode(), body))
    return base64.b64encode(hmac.new(key_of(secret), message, sha256).digest()).decode()
