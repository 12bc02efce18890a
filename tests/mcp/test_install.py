"""`perdure mcp install`: it writes what a client reads, keeps what is there, and asks first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from perdure.errors import InvalidInput
from perdure.mcp import plan_change

COMMAND = ["perdure", "mcp"]
SERVER = {"command": "perdure", "args": ["mcp"]}


def plan(client: str, folder: Path, command: list[str] | None = None) -> Any:
    return plan_change(client, command or COMMAND, folder=folder, home=folder / "home")


@pytest.mark.parametrize("client, file", [("claude", ".mcp.json"), ("cursor", ".cursor/mcp.json")])
def test_a_json_client_is_told_beside_its_other_servers(tmp_path: Path, client: str, file: str) -> None:
    change = plan(client, tmp_path)
    assert (change.path, change.before) == (tmp_path / file, None)
    assert json.loads(change.after) == {"mcpServers": {"perdure": SERVER}}
    others = {"theme": "é", "mcpServers": {"other": {"command": "x"}, "perdure": {"command": "old"}}}
    change.path.parent.mkdir(exist_ok=True)
    change.path.write_text(json.dumps(others))
    wanted = {"theme": "é", "mcpServers": {"other": {"command": "x"}, "perdure": SERVER}}
    again = plan(client, tmp_path)
    assert json.loads(again.after) == wanted
    change.path.write_text(again.after)
    assert not plan(client, tmp_path).is_needed


def test_codex_is_told_in_a_section_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "home/.codex/config.toml"
    path.parent.mkdir(parents=True)
    path.write_text('model = "x"  # mine\n\n[mcp_servers.other]\ncommand = "y"\n')
    change = plan("codex", tmp_path, ['C:\\"odd" path', "mcp"])
    assert change.after.startswith('model = "x"  # mine\n')
    told = tomllib.loads(change.after)["mcp_servers"]
    assert told["other"] == {"command": "y"}
    assert told["perdure"] == {
        "command": 'C:\\"odd" path', "args": ["mcp"], "startup_timeout_sec": 30, "tool_timeout_sec": 90,
    }  # fmt: skip
    path.write_text(change.after)
    assert not plan("codex", tmp_path, ['C:\\"odd" path', "mcp"]).is_needed
    with pytest.raises(InvalidInput, match="another"):
        plan("codex", tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": []}', '{"mcpServers": 5}'])
def test_a_file_that_is_not_what_it_should_be_is_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / ".mcp.json").write_text(text)
    with pytest.raises(InvalidInput, match="cannot be read"):
        plan("claude", tmp_path)
    (tmp_path / "home/.codex").mkdir(parents=True)
    (tmp_path / "home/.codex/config.toml").write_text("= x")
    with pytest.raises(InvalidInput, match="cannot be read"):
        plan("codex", tmp_path)


def test_what_a_person_gave_the_entry_stays_and_so_do_indent_and_newlines(tmp_path: Path) -> None:
    file = tmp_path / ".mcp.json"
    before = (
        '{\r\n    "mcpServers": {\r\n        "perdure": {"command": "old", "env": {"A": "\\ud800"}}\r\n    }\r\n}\r\n'
    )
    file.write_bytes(before.encode())
    after = plan("claude", tmp_path).after
    assert json.loads(after)["mcpServers"]["perdure"] == {**SERVER, "env": {"A": "\ud800"}}
    assert after.startswith('{\r\n    "mcpServers"') and after.count("\n") == after.count("\r\n")
    file.write_bytes(b"\xef\xbb\xbf" + after.encode())
    assert not plan("claude", tmp_path).is_needed


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"a": {"command": "x"}}, "mcpServers": {}}',  # one of them would be lost
        '{"mcpServers": {"perdure": {"type": "http", "url": "http://x"}}}',
        '{"mcpServers": {"perdure": 5}}',
        '{"mcpServers": {} /* mine */}',
        "[" * 100_000,
    ],
)
def test_a_file_that_would_lose_something_is_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / ".mcp.json").write_text(text)
    with pytest.raises(InvalidInput) as refused:
        plan("claude", tmp_path)
    assert refused.value.kept == "the file, unchanged"


@pytest.mark.parametrize(
    "text", ["mcp_servers = 5", 'mcp_servers = {other = {command = "y"}}', "[mcp_servers]\nperdure = 5"]
)
def test_a_toml_file_that_takes_no_section_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "home/.codex/config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(InvalidInput) as refused:
        plan("codex", tmp_path)
    assert refused.value.kept == "the file, unchanged"


def test_a_linked_file_stays_a_link(tmp_path: Path) -> None:
    kept, work = tmp_path / "dotfiles" / "mcp.json", tmp_path / "work"
    kept.parent.mkdir()
    work.mkdir()
    kept.write_text('{"mcpServers": {"other": {"command": "x"}}}')
    (work / ".mcp.json").symlink_to(kept)
    assert install(work, "claude", "--yes").returncode == 0
    assert (work / ".mcp.json").is_symlink() and set(json.loads(kept.read_text())["mcpServers"]) == {"other", "perdure"}


def install(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "HOME": str(folder), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "perdure", "mcp", "install", *arguments]
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=120
    )


def test_it_writes_and_keeps_a_copy_of_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / ".mcp.json"
    file.write_text("{}")
    file.chmod(0o640)
    done = install(tmp_path, "claude", "--yes")
    assert done.returncode == 0, done.stderr
    assert json.loads(file.read_text())["mcpServers"]["perdure"]["args"][-1] == "mcp"
    assert (tmp_path / ".mcp.json.before-perdure").read_text() == "{}"
    assert file.stat().st_mode & 0o777 == 0o640
    again = install(tmp_path, "claude", "--yes")
    assert again.returncode == 0 and "already" in again.stdout
    assert not (tmp_path / ".perdure").exists()


def test_it_only_prints_when_asked_to_and_asks_before_it_writes(tmp_path: Path) -> None:
    shown = install(tmp_path, "codex", "--print")
    assert "[mcp_servers.perdure]" in shown.stdout
    assert install(tmp_path, "codex").returncode == 2
    assert not (tmp_path / ".codex").exists()
