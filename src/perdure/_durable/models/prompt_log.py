"""The prompts of a task's model calls, stored so that each message is in the journal once, and read back.

A conversation grows by a message or two per call, and every call sends all of it. So each message is stored once, by
its content. A prompt is stored as the messages that follow the longest beginning it shares with an earlier prompt:

    call 1    system, question                  "" + [system, question]             -> head a
    call 2    system, question, answer, more    a  + [(the answer of call 1), more] -> head b

So a hundred calls take the bytes of their messages, not a hundred times the conversation. The head of this chain of
hashes is the prompt's hash. Tasks never share messages.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from perdure._durable.attempt import Attempt
from perdure._ground.encoding import codec
from perdure._model import Entry, name_of, scope_of
from perdure.errors import NotStorable

_HASH = 16


class Prompt(msgspec.Struct, array_like=True, frozen=True):
    """A stored prompt: the head of an earlier one, and the messages that follow it.

    The content of a message is None when the journal already has it.
    """

    base: bytes
    added: list[tuple[bytes, bytes | None]]


def hash_of(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_HASH).digest()


class Conversations:
    """The messages that a task's journal holds."""

    def __init__(self, attempt: Attempt) -> None:
        self._mutex = threading.Lock()  # plain functions call models from their threads
        self._contents: set[bytes] = set()
        self._heads: set[bytes] = {b""}
        ends = {entry.path: entry for _, entry in attempt.entries if entry.kind == "result"}
        for _, entry in attempt.entries:
            if entry.op == "model" and entry.value is not None:
                self._learn(msgspec.msgpack.decode(entry.value, type=Prompt))
                reply = ends.get(scope_of(entry.path))
                if reply is not None and reply.value is not None:
                    self._contents.add(hash_of(reply.value))

    def _learn(self, prompt: Prompt) -> None:
        head = prompt.base
        for message, content in prompt.added:
            head = hash_of(head + message)
            self._heads.add(head)
            if content is not None:
                self._contents.add(message)

    def learn_reply(self, reply: Any, as_type: Any) -> None:
        """Remember a reply: the journal has it as the step's result, so the next prompt can refer to it."""
        try:
            self._contents.add(hash_of(codec.encode(reply, as_type)))
        except NotStorable:
            return

    def add(self, messages: Any) -> tuple[bytes, bytes]:
        """A prompt in its stored form, and its hash."""
        whole = list(messages) if isinstance(messages, list | tuple) else [messages]
        contents = [codec.encode(message) for message in whole]
        hashes = [hash_of(content) for content in contents]
        heads = [b""]
        for message in hashes:
            heads.append(hash_of(heads[-1] + message))
        with self._mutex:
            return self._known(contents, hashes, heads), heads[-1]

    def _known(self, contents: list[bytes], hashes: list[bytes], heads: list[bytes]) -> bytes:
        known = next(number for number in range(len(heads) - 1, -1, -1) if heads[number] in self._heads)
        added: list[tuple[bytes, bytes | None]] = []
        for message, content in zip(hashes[known:], contents[known:], strict=True):
            added.append((message, None if message in self._contents else content))
            self._contents.add(message)
        self._heads.update(heads[known:])
        return msgspec.msgpack.encode(Prompt(heads[known], added))


class PromptBook:
    """The messages of one journal, and how its prompts are composed of them."""

    def __init__(self) -> None:
        self.contents: dict[bytes, bytes] = {}
        self._before: dict[bytes, tuple[bytes, bytes]] = {}  # by head: the head before it, and its last message

    def add(self, prompt: Prompt) -> bytes:
        head = prompt.base
        for message, content in prompt.added:
            before, head = head, hash_of(head + message)
            self._before[head] = (before, message)
            if content is not None:
                self.contents[message] = content
        return head

    def messages(self, head: bytes) -> list[Any]:
        found = []
        while head:
            head, message = self._before[head]
            found.append(codec.decode(self.contents[message]))
        return found[::-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One model call in the journal."""

    name: str
    path: str
    model: str
    prompt: str  # a hash of the messages
    input_tokens: int
    output_tokens: int
    money: float
    is_kept: bool  # its reply was recorded; otherwise the call was made again
    _book: PromptBook = field(repr=False, compare=False)
    _head: bytes = field(repr=False)

    @property
    def messages(self) -> list[Any]:
        """The messages that were sent."""
        return self._book.messages(self._head)


def model_calls(entries: Sequence[Entry]) -> list[ModelCall]:
    """The model calls of a journal, in order."""
    ends = {entry.path: entry for entry in entries if entry.kind == "result"}
    book, calls = PromptBook(), []
    for entry in entries:
        if entry.op != "model" or entry.value is None:
            continue
        head = book.add(msgspec.msgpack.decode(entry.value, type=Prompt))
        path, note = scope_of(entry.path), entry.note or {}
        reply = ends.get(path)
        if reply is not None and reply.value is not None:
            book.contents.setdefault(hash_of(reply.value), reply.value)
        calls.append(
            ModelCall(
                name=name_of(path),
                path=path,
                model=str(note.get("model") or ""),
                prompt=str(note.get("prompt") or ""),
                input_tokens=int(note.get("input_tokens") or 0),
                output_tokens=int(note.get("output_tokens") or 0),
                money=float(note.get("spent_money") or 0),
                is_kept=reply is not None,
                _book=book,
                _head=head,
            )
        )
    return calls
