"""Credentials: API keys, one-time links, sessions, and the secret that a server signs with.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.server.credentials.api_keys import ApiKey, ApiKeys, MadeKey, read_key
from perdure.server.credentials.presets import PRESETS, SCOPES, scopes_of
from perdure.server.credentials.sessions import Link, Session, Sessions
from perdure.server.credentials.vault import Vault
__all__ = [
    "ApiKey",
    "ApiKeys",
    "MadeKey",
    "read_key",
    "PRESETS",
    "SCOPES",
    "scopes_of",
    "Link",
    "Session",
    "Sessions",
    "Vault",
]
