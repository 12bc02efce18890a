"""Keep secrets out of what people and models read: logs, prompts, reports, bundles.

There are two filters. The first replaces values that this process knows to be secret (it fetched them, or filtered
them out of an environment) wherever they stand, also base64- or URL-encoded. The second replaces text that looks like
a secret: tokens of known makers, private keys, passwords in addresses and assignments. The forms are in
perdure/_ground/secrets/secret_forms.py, the one list that all filters share; the known values are in
perdure/_ground/secrets/known_secrets.py.

The second filter guesses and misses some. The first misses no value of six characters or more.
"""

from __future__ import annotations

import logging

from perdure._ground.secrets import secret_forms
from perdure._ground.secrets.known_secrets import forget_all, hide_known, is_known, know, known_in, redact, redact_value

HIDDEN = secret_forms.HIDDEN
__all__ = [
    "HIDDEN",
    "RedactingFilter",
    "forget_all",
    "hide_known",
    "holds_a_token",
    "is_telling",
    "know",
    "known_in",
    "looks_secret",
    "redact",
    "redact_value",
]


def holds_a_token(data: bytes) -> bool:
    """True if something in these bytes has the form of a maker's token or of a private key."""
    return secret_forms.holds_a_token(data.decode("latin-1"))


def is_telling(name: str) -> bool:
    """True if a name says that its value is secret."""
    return secret_forms.is_telling(name)


def looks_secret(value: str) -> bool:
    """True if a value is known to be secret, or has the form of one."""
    return is_known(value) or secret_forms.looks_secret(value)


class RedactingFilter(logging.Filter):
    """A filter for any log handler: what passes it is redacted."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        clean = redact(message)
        if clean != message:
            record.msg, record.args = clean, ()
        return True
