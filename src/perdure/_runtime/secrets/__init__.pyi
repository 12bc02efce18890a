"""Secrets by reference, redaction, credentials, and the environment built from them.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._runtime.secrets.credentials import Token, renew
from perdure._runtime.secrets.environment import Environment, NO_RULES, Rules, umask_now
from perdure._runtime.secrets.redaction import RedactingFilter, is_telling, looks_secret, redact, redact_value
from perdure._runtime.secrets.secret_references import Secret, references_in, resolve
from perdure._runtime.secrets import environment
from perdure._runtime.secrets import redaction
__all__ = [
    "Token",
    "renew",
    "Environment",
    "NO_RULES",
    "Rules",
    "umask_now",
    "RedactingFilter",
    "is_telling",
    "looks_secret",
    "redact",
    "redact_value",
    "Secret",
    "references_in",
    "resolve",
    "environment",
    "redaction",
]
