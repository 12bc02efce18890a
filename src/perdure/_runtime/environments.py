"""The environment a unit is made with: what of it may be written down, and what only referred to. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_SECRET = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|_KEY$|_AUTH$|^AUTH|COOKIE|_DSN$"
    r"|DATABASE_URL|CONNECTION_STRING",
    re.IGNORECASE,
)
# A user and a password inside an address.
_WITH_PASSWORD = re.compile(r"://[^/\s:@]+:[^/\s@]+@")
# Of the process that asks, and of no meaning to another one.
_OWN = frozenset({"PERDURE_TEST_CLOCK", "PERDURE_UNIT", "PERDURE_TASK", "_", "SHLVL", "PWD", "OLDPWD"})


class Split(NamedTuple):
    recorded: dict[str, str]
    secrets: dict[str, str]  # given to the process, written down nowhere


def is_secret(name: str, value: str = "") -> bool:
    return bool(_SECRET.search(name) or _WITH_PASSWORD.search(value))


def split(env: Mapping[str, str]) -> Split:
    """What may be recorded, and what may not."""
    kept = {name: value for name, value in env.items() if name not in _OWN}
    secrets = {name: value for name, value in kept.items() if is_secret(name, value)}
    return Split({name: value for name, value in kept.items() if name not in secrets}, secrets)


def reference(name: str) -> str:
    """What stands in a record instead of a secret of the environment."""
    return f"secret://env/{name}"
