"""Credentials: API keys, one-time links, sessions, and the secret that a server signs with."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "api_keys": ("ApiKey", "ApiKeys", "MadeKey", "read_key"),
        "presets": ("PRESETS", "SCOPES", "scopes_of"),
        "sessions": ("Link", "Session", "Sessions"),
        "vault": ("Vault",),
    },
)
