"""How coding agents are told of this server: the file of each, and what is put into it. Pure but for reading the file.

Nothing that is there is taken away. A file that cannot be read as what it should be is left alone.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from perdure.errors import InvalidInput

_NAME = "perdure"
# The client, where its file is, and whether that is in the home folder.
CLIENTS = {"claude": (".mcp.json", False), "cursor": (".cursor/mcp.json", False), "codex": (".codex/config.toml", True)}


class ConfigChange(NamedTuple):
    """A file as it is, and as it is to be; both alike when it says it already."""

    path: Path
    before: str | None  # None: there is none
    after: str

    @property
    def is_needed(self) -> bool:
        return self.before != self.after


def plan_change(client: str, command: Sequence[str], *, folder: Path, home: Path) -> ConfigChange:
    """What to write so that a client starts this command as an MCP server.

    Raises:
        InvalidInput: the client is not known, or its file is damaged.
    """
    if client not in CLIENTS:
        raise InvalidInput(f"{client!r} is not a client known here", do=f"choose one of {', '.join(CLIENTS)}")
    name, is_at_home = CLIENTS[client]
    path = (home if is_at_home else folder) / name
    try:
        before = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        before = None
    except (OSError, UnicodeDecodeError) as problem:
        raise _damaged(path, str(problem)) from None
    change = _toml if name.endswith(".toml") else _json
    return ConfigChange(path, before, change(path, before or "", list(command)))


def _json(path: Path, before: str, command: list[str]) -> str:
    try:
        config: Any = json.loads(before) if before.strip() else {}
    except ValueError as problem:
        raise _damaged(path, str(problem)) from None
    servers = config.setdefault("mcpServers", {}) if isinstance(config, dict) else None
    if not isinstance(servers, dict):
        raise _damaged(path, "it holds no object `mcpServers`")
    wanted = {"command": command[0], "args": command[1:]}
    if servers.get(_NAME) == wanted:
        return before
    servers[_NAME] = wanted
    return json.dumps(config, indent=2, ensure_ascii=False) + "\n"


def _toml(path: Path, before: str, command: list[str]) -> str:
    try:
        config = tomllib.loads(before)
    except tomllib.TOMLDecodeError as problem:
        raise _damaged(path, str(problem)) from None
    servers = config.get("mcp_servers", {})
    known = servers.get(_NAME) if isinstance(servers, dict) else None
    if known is not None:
        if known.get("command") == command[0] and known.get("args") == command[1:]:
            return before
        raise InvalidInput(
            f"{path} already has another [mcp_servers.{_NAME}]",
            kept="the file, unchanged",
            do="remove that section, then call again",
        )
    # The first start reads the packages from disk, and one call waits up to 50 s.
    section = (
        f"[mcp_servers.{_NAME}]\ncommand = {json.dumps(command[0])}\nargs = {json.dumps(command[1:])}\n"
        "startup_timeout_sec = 30\ntool_timeout_sec = 90\n"
    )
    return f"{before.rstrip()}\n\n{section}" if before.strip() else section


def _damaged(path: Path, problem: str) -> InvalidInput:
    return InvalidInput(f"{path} cannot be read: {problem}", kept="the file, unchanged", do="mend it, then call again")
