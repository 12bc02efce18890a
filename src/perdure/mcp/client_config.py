"""How coding agents are told of this server: the file of each, and what is put into it. Pure but for reading the file.

Nothing that is there is taken away. A file that cannot be read as what it should be is left alone.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from perdure.errors import InvalidInput

_NAME = "perdure"
_INDENT = re.compile(r"^([ \t]+)\"", re.MULTILINE)  # of the first line that has one
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
    path = path.resolve()  # of a link, the file that it points to
    try:
        before = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        before = None
    except (OSError, UnicodeDecodeError) as problem:
        raise _damaged(path, str(problem)) from None
    change = _toml if name.endswith(".toml") else _json
    plain = (before or "").replace("\r\n", "\n")
    try:
        after = change(path, plain, list(command))
    except RecursionError:
        raise _damaged(path, "it is nested too deep") from None
    if before is not None and after == plain:
        return ConfigChange(path, before, before)
    return ConfigChange(path, before, after.replace("\n", "\r\n") if before and "\r\n" in before else after)


def _json(path: Path, before: str, command: list[str]) -> str:
    try:
        config: Any = json.loads(before, object_pairs_hook=_once) if before.strip() else {}
    except ValueError as problem:
        raise _damaged(path, str(problem)) from None
    servers = config.setdefault("mcpServers", {}) if isinstance(config, dict) else None
    if not isinstance(servers, dict):
        raise _damaged(path, "it holds no object `mcpServers`")
    known = servers.get(_NAME, {})
    if not isinstance(known, dict) or "url" in known:
        raise _another(path, f'"{_NAME}" under "mcpServers"')
    wanted = {**known, "command": command[0], "args": command[1:]}  # its env, and what else a person gave it, stays
    if servers.get(_NAME) == wanted:
        return before
    servers[_NAME] = wanted
    indent = _INDENT.search(before)
    return json.dumps(config, indent=indent[1] if indent else 2, ensure_ascii=not _is_text(config)) + "\n"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):  # one of the two would be lost
        raise ValueError("it has a name twice in one object")
    return found


def _is_text(config: Any) -> bool:
    """True if every text in it can be written as UTF-8; half a surrogate pair has to stay an escape."""
    try:
        json.dumps(config, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _toml(path: Path, before: str, command: list[str]) -> str:
    config = _read_toml(path, before)
    servers = config.get("mcp_servers", {})
    if not isinstance(servers, dict):
        raise _damaged(path, "it holds no table `mcp_servers`")
    known = servers.get(_NAME)
    if isinstance(known, dict) and known.get("command") == command[0] and known.get("args") == command[1:]:
        return before
    if known is not None:
        raise _another(path, f"[mcp_servers.{_NAME}]")
    # The first start reads the packages from disk, and one call waits up to 50 s.
    section = (
        f"[mcp_servers.{_NAME}]\ncommand = {json.dumps(command[0])}\nargs = {json.dumps(command[1:])}\n"
        "startup_timeout_sec = 30\ntool_timeout_sec = 90\n"
    )
    after = f"{before.rstrip()}\n\n{section}" if before.strip() else section
    try:
        tomllib.loads(after)
    except tomllib.TOMLDecodeError:  # `mcp_servers = {…}` on one line takes no section of its own
        raise InvalidInput(
            f"{path} takes no section [mcp_servers.{_NAME}] at its end",
            kept="the file, unchanged",
            do="write mcp_servers as sections, then call again",
        ) from None
    return after


def _read_toml(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise _damaged(path, str(problem)) from None


def _another(path: Path, what: str) -> InvalidInput:
    return InvalidInput(
        f"{path} already has another {what}", kept="the file, unchanged", do="remove that entry, then call again"
    )


def _damaged(path: Path, problem: str) -> InvalidInput:
    return InvalidInput(f"{path} cannot be read: {problem}", kept="the file, unchanged", do="mend it, then call again")
