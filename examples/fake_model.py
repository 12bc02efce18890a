"""A model that runs on this machine, streams its answers and counts what it is asked; stands in for a paid one.

    python examples/fake_model.py [PORT [SECONDS_PER_WORD]]     # prints its address, then a line for each call

`POST /chat` with {"messages": […], "prefix": "…"} streams one JSON object per line; `GET /bill` says what was
asked of it. Told to misbehave, by `POST /misbehave`, it does so for the next calls:

    {"drop": 2}      hangs up after half of the answer, twice
    {"refuse": 1}    answers 503, once
    {"stall": 1}     says half of the answer and then nothing more, once
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

NOTES = ("read the sources", "compare the numbers", "write the summary")


# ── what a provider's library would give you ─────────────────────────────────────────────────────


class Client:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80

    async def stream(self, messages: list[dict[str, str]], prefix: str = "") -> AsyncIterator[dict[str, Any]]:
        """{"text": …} for each word, and at the end {"usage": …}; the words after `prefix`, if one is given."""
        async for line in self._lines("POST", "/chat", {"messages": messages, "prefix": prefix}):
            yield json.loads(line)

    async def bill(self) -> dict[str, int]:
        return {k: v for line in [x async for x in self._lines("GET", "/bill")] for k, v in json.loads(line).items()}

    async def misbehave(self, **how: int) -> None:
        _ = [line async for line in self._lines("POST", "/misbehave", how)]

    async def _lines(self, method: str, path: str, content: Any = None) -> AsyncIterator[bytes]:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            body = json.dumps(content).encode()
            writer.write(f"{method} {path} HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
            status = int((await reader.readline()).split()[1])
            while (await reader.readline()).strip():
                pass
            if status != 200:
                raise ConnectionError(f"the model answered {status}")
            whole = False
            async for line in reader:
                whole = line == b"end\n"
                if not whole:
                    yield line
            if not whole:
                raise ConnectionError("the model hung up in the middle of its answer")
        finally:
            writer.close()


# ── the model ────────────────────────────────────────────────────────────────────────────────────


class FakeModel:
    """Asks for one tool after the other, and then says that it is done."""

    def __init__(self, *, seconds_per_word: float = 0.0, chatty: bool = False) -> None:
        self.bill = {"calls": 0, "input_tokens": 0, "output_tokens": 0}
        self.wrong = {"drop": 0, "refuse": 0, "stall": 0}
        self._pause, self._chatty = seconds_per_word, chatty

    async def serve(self, port: int = 0) -> str:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", port)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def close(self) -> None:
        self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            path = (await reader.readline()).split()[1].decode()
            length = 0
            while header := (await reader.readline()).strip():
                name, _, value = header.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            content = json.loads(await reader.readexactly(length))
            await self._speak(path, content, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # whoever asked has died; that is what we are here for
        finally:
            writer.close()

    async def _speak(self, path: str, content: Any, writer: asyncio.StreamWriter) -> None:
        if path == "/chat" and self._turns_wrong("refuse"):
            writer.write(b"HTTP/1.0 503 Busy\r\n\r\n")
            return
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n")
        if path == "/bill":
            writer.write(json.dumps(self.bill).encode() + b"\nend\n")
        elif path == "/misbehave":
            self.wrong.update(content)
            writer.write(b"end\n")
        else:
            await self._chat(content["messages"], content["prefix"], writer)

    async def _chat(self, messages: list[dict[str, str]], prefix: str, writer: asyncio.StreamWriter) -> None:
        words = _reply(messages)[len(prefix) :].split(" ")
        asked = sum(len(message["content"].split()) for message in messages)
        self.bill["calls"] += 1
        self.bill["input_tokens"] += asked
        if self._chatty:
            print(f"call {self.bill['calls']}: {asked} tokens in", flush=True)
        ends_at = len(words) // 2 if self.wrong["drop"] or self.wrong["stall"] else None
        for number, word in enumerate(words):
            if number == ends_at:
                if self._turns_wrong("stall"):
                    await asyncio.Event().wait()
                self._turns_wrong("drop")
                return
            self.bill["output_tokens"] += 1
            text = word if number == len(words) - 1 else f"{word} "
            writer.write(json.dumps({"text": text}).encode() + b"\n")
            await writer.drain()
            await asyncio.sleep(self._pause)
        writer.write(json.dumps({"usage": {"input_tokens": asked, "output_tokens": len(words)}}).encode() + b"\nend\n")

    def _turns_wrong(self, how: str) -> bool:
        if self.wrong[how] <= 0:
            return False
        self.wrong[how] -= 1
        return True


def _reply(messages: list[dict[str, str]]) -> str:
    """One note for each turn, as a call of the tool; then the end."""
    done = sum(message["role"] == "tool" for message in messages)
    if done < len(NOTES):
        return f"TOOL write_note {NOTES[done]}"
    return f"All {done} notes about it are written, and I am done."


async def _main() -> None:
    port, pause = [*map(float, sys.argv[1:]), *(0, 0.05)[len(sys.argv) - 1 :]]
    model = FakeModel(seconds_per_word=pause, chatty=True)
    print(await model.serve(int(port)), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main())
