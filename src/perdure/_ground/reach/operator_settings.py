"""The operator's settings for processes that are not a server: the same settings, from the same places.

`allow_private_hooks` and `hook_ports` are in `[server]` of config.toml beside the store, or in PERDURE_SERVER_….
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perdure._ground.reach.web_address import PUBLIC, Rules

_TRUE = ("1", "true", "yes", "on")


def operator_rules(folder: Path | None = None, environ: Mapping[str, str] = os.environ) -> Rules:
    """The rules for addresses of webhooks. An unreadable setting allows nothing."""
    given = _from_file(folder)
    private = environ.get("PERDURE_SERVER_ALLOW_PRIVATE_HOOKS", given.get("allow_private_hooks", False))
    ports = environ.get("PERDURE_SERVER_HOOK_PORTS", given.get("hook_ports", PUBLIC.ports))
    is_private_allowed = private if isinstance(private, bool) else str(private).strip().lower() in _TRUE
    return Rules(_ports(ports), is_private_allowed)


def _from_file(folder: Path | None) -> Mapping[str, Any]:
    if folder is None:
        return {}
    try:
        server = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8")).get("server", {})
    except (OSError, ValueError):
        return {}
    return server if isinstance(server, dict) else {}


def _ports(given: object) -> tuple[int, ...]:
    parts = given.split(",") if isinstance(given, str) else given
    try:
        return tuple(int(part) for part in parts)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        return PUBLIC.ports
