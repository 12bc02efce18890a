"""Read the calls from a session's transcript, and from the copy that the CLI keeps on its machine.

The entries belong to the CLI. Only what the Messages API defines is read in them (tool calls and their results), and
the mark of a deferred call. If a later CLI writes that another way, a resume costs one more model call.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

_LARGEST = 256 * 1024 * 1024


class Transcript:
    """The entries of one session."""

    def __init__(self, entries: Iterable[Mapping[str, Any]], of_subagents: Iterable[Mapping[str, Any]] = ()) -> None:
        self._entries = list(entries)
        self.results: dict[str, bool] = {}  # by the id of the call: whether it is an error
        self._deferred: set[str] = set()
        for entry in (*self._entries, *of_subagents):
            for block in _blocks(entry):
                if block.get("type") == "tool_result" and isinstance(block.get("tool_use_id"), str):
                    self.results[block["tool_use_id"]] = block.get("is_error") is True
            mark = entry.get("attachment")
            if isinstance(mark, Mapping) and mark.get("type") == "hook_deferred_tool":
                self._deferred.add(str(mark.get("toolUseID")))

    @property
    def has_begun(self) -> bool:
        """True if the prompt is in it."""
        return any(entry.get("type") == "user" for entry in self._entries)

    def asks_by_itself(self, call_id: str) -> bool:
        """True if the CLI makes this deferred call when the session is resumed, without a prompt."""
        return call_id in self._deferred and call_id not in self.results

    def has_told(self, call_id: str, is_error: bool) -> bool:
        """True if the model has seen how a call ended. The CLI closes a call that was cut off with an error."""
        told = self.results.get(call_id)
        return told is not None and told == is_error


def calls_in(entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The ids of the calls that the model asks for in these entries."""
    for entry in entries:
        for block in _blocks(entry):
            if block.get("type") == "tool_use" and isinstance(block.get("id"), str):
                yield block["id"]


def _blocks(entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    message = entry.get("message")
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, list):
        yield from (block for block in content if isinstance(block, Mapping))


def read_local(path: Path) -> list[dict[str, Any]]:
    """The entries of a transcript on this machine; none if it is not there. A torn last line is left out."""
    try:
        if path.stat().st_size > _LARGEST:
            return []
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            break  # what follows would stand behind a hole
        if isinstance(entry, dict) and "type" in entry:
            found.append(entry)
    return found
