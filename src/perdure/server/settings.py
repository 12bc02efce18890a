"""The settings of a server: `[server]` in .perdure/config.toml, PERDURE_SERVER_*, options of the command line."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from perdure._ground.durations import parse_duration
from perdure._ground.reach import Rules
from perdure.errors import InvalidInput

MB = 1024 * 1024
_PREFIX = "PERDURE_SERVER_"
_NUMBER = re.compile(r"\s*(\d+)\s*(kB|MB|GB|/s|)\s*", re.IGNORECASE)


class Settings(Struct, frozen=True, kw_only=True):
    """Limits and addresses of one server; each with its default."""

    host: str = "127.0.0.1"
    port: int = 7420
    socket: str | None = None
    origins: tuple[str, ...] = ()  # where browsers reach it, when a proxy ends TLS
    trusted_proxies: tuple[str, ...] = ()  # networks whose X-Forwarded-For is believed
    read_only: bool = False
    body_limit: int = 2 * MB
    state_limit: int = 64 * MB
    depth: int = 64  # of JSON
    page_limit: int = 200
    rate: int = 50  # requests a second and credential
    burst: int = 200
    streams_per_key: int = 20
    streams: int = 4000
    session: timedelta = timedelta(hours=12)
    link: timedelta = timedelta(minutes=10)
    retention_deliveries: timedelta = timedelta(days=7)
    allow_private_hooks: bool = False
    hook_ports: tuple[int, ...] = (443,)

    @property
    def hook_rules(self) -> Rules:
        """The addresses that messages to webhooks may go to."""
        return Rules(self.hook_ports, self.allow_private_hooks)


def load_settings(folder: Path | None = None, environ: Mapping[str, str] = os.environ, **options: Any) -> Settings:
    """Settings from `[server]` in the folder's config.toml, then PERDURE_SERVER_*, then options that are not None.

    Raises:
        InvalidInput: a name is unknown, or a value will not do.
    """
    given: dict[str, Any] = {}
    for name, value in _from_file(folder).items():
        field = _known(name, "[server] in config.toml")
        given[field] = _read(field, value)
    for name, text in environ.items():
        if name.startswith(_PREFIX):
            field = _known(name.removeprefix(_PREFIX).lower(), "the environment", name)
            given[field] = _read(field, text)
    given.update({name: value for name, value in options.items() if value is not None})
    try:
        return msgspec.convert(given, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"the settings of the server will not do: {error}") from None


def _from_file(folder: Path | None) -> dict[str, Any]:
    if folder is None or not (path := folder / "config.toml").is_file():
        return {}
    try:
        whole = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read {path}: {error}") from None
    server = whole.get("server", {})
    if not isinstance(server, dict):
        raise InvalidInput(f"[server] in {path} is not a table")
    return server


def _known(name: str, where: str, spelled: str = "") -> str:
    if name in Settings.__struct_fields__:
        return name
    near = difflib.get_close_matches(name, Settings.__struct_fields__, 1)
    do = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(Settings.__struct_fields__)}"
    raise InvalidInput(f"unknown setting {spelled or name!r} in {where}", do=do)


def _read(name: str, value: Any) -> Any:
    """A value of the file or the environment: sizes as 2MB, durations as 10m, rates as 50/s, lists by commas."""
    kind = Settings.__annotations__[name]
    if not isinstance(value, str):
        return value
    if kind.startswith("tuple"):
        return [part.strip() for part in value.split(",") if part.strip()]
    if kind == "timedelta":
        if (length := parse_duration(value)) is None:
            raise InvalidInput(f"the setting {name} is not a duration: {value!r}", do="write 500ms, 30s, 10m or 12h")
        return length
    if kind == "bool":
        return value.strip().lower() in ("1", "true", "yes", "on")
    if kind == "int":
        found = _NUMBER.fullmatch(value)
        if found is None:
            raise InvalidInput(f"the setting {name} is not a number: {value!r}", do="write 200, 50/s or 2MB")
        return int(found[1]) * {"kb": 1024, "mb": MB, "gb": 1024 * MB}.get(found[2].lower(), 1)
    return value
