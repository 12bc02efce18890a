"""Secrets by reference, redaction, credentials, and the environment built from them."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "credentials": ("Token", "renew"),
        "environment": ("Environment", "NO_RULES", "Rules", "umask_now"),
        "redaction": ("RedactingFilter", "is_telling", "looks_secret", "redact", "redact_value"),
        "secret_references": ("Secret", "references_in", "resolve"),
    },
    modules=("environment", "redaction"),
)
