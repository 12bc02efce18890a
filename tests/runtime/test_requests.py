"""A request is made once, whoever lives to read its answer."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from perdure import Secret
from perdure._runtime.units.request import KeptRequest
from perdure.errors import Conflict, InvalidInput, RequestFailed
from tests.runtime.kit import Place, until
from tests.runtime.test_files import agent, kill
from tests.support.waiting import look_again

SECRET = "sk-the-secret-of-this-test"


class Target:
    """A server that counts, and answers piece by piece as it is told to."""

    def __init__(self, headers: Mapping[str, str] = {}) -> None:
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        self.may_answer, self.go = threading.Event(), threading.Event()
        self.may_answer.set()
        self.cut = False
        self.first, self.times = b"first ", 1
        target = self

        class Answers(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                target.asked.append((self.path, dict(self.headers), body))
                target.may_answer.wait(60)
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                for _ in range(target.times):
                    self.piece(target.first)
                target.go.wait(60)
                if target.cut:
                    self.close_connection = True
                    return
                self.piece(b"second")
                self.wfile.write(b"0\r\n\r\n")

            def piece(self, data: bytes) -> None:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()

            def log_message(self, format: str, *args: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/complete"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def target() -> Iterator[Target]:
    made = Target()
    yield made
    made.go.set()
    made.server.shutdown()
    made.server.server_close()


ASK = """
async def act(rt, url):
    req = await rt.request("llm-17", "POST", url, json={"prompt": "hi"})
    async for chunk in req.chunks():
        if chunk:
            break
"""


@pytest.mark.req("R86", "R117")
async def test_a_request_goes_on_without_agent_and_keeper_and_is_made_once(place: Place, target: Target) -> None:
    kill(agent(place, ASK, target.url))
    place.kill_keeper()
    target.go.set()

    async with place.runtime() as rt:
        request = await rt.request("llm-17", "POST", target.url, json={"prompt": "hi"})
        assert await request.read() == b"first second"
    place.kill_keeper()

    async with place.runtime() as rt:
        request = await rt.request("llm-17", "POST", target.url, json={"prompt": "hi"})
        assert (await request.read(), request.level) == (b"first second", "kept")
        assert b"".join([piece async for piece in request.chunks(after=6)]) == b"second"
        assert (await request.head()).status == 200
    assert [(path, json.loads(body)) for path, _, body in target.asked] == [("/complete", {"prompt": "hi"})]


async def test_a_name_is_one_request(place: Place, target: Target) -> None:
    target.go.set()
    async with place.runtime() as rt:
        await (await rt.request("llm-1", "POST", target.url, json=1)).read()
        again = await rt.request("llm-1", "POST", target.url, json=1)
        assert await again.read() == b"first second"
        other = rt.request("llm-1", "POST", target.url, json=2)
        with pytest.raises(Conflict):
            await other
    assert len(target.asked) == 1


async def test_whoever_waits_for_the_head_is_told_when_it_comes(
    place: Place, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, ask = [], KeptRequest.ask

    def counted(request: KeptRequest, verb: str, *args: Any, **kwargs: Any) -> Any:
        asked.append(verb)
        return ask(request, verb, *args, **kwargs)

    monkeypatch.setattr(KeptRequest, "ask", counted)
    target.may_answer.clear()
    async with place.runtime() as rt:
        request = await rt.request("llm-1", "POST", target.url)
        heads = [asyncio.create_task(request.head()) for _ in range(2)]
        while not target.asked:
            await look_again()
        target.may_answer.set()  # and the body does not come yet
        assert [head.status for head in await asyncio.gather(*heads)] == [200, 200]
    assert asked == ["answered", "answered"]


@pytest.mark.req("R89")
async def test_an_answer_that_is_cut_off_is_not_taken_for_whole(place: Place, target: Target) -> None:
    target.cut = True
    target.go.set()
    async with place.runtime() as rt:
        request = await rt.request("llm-1", "POST", target.url)
        pieces = request.chunks()
        assert await anext(pieces) == b"first "
        with pytest.raises(RequestFailed) as failed:
            await anext(pieces)
        assert failed.value.sent


async def test_a_request_that_never_left_says_so(place: Place, target: Target) -> None:
    target.server.shutdown()
    target.server.server_close()
    async with place.runtime() as rt:
        request = await rt.request("llm-1", "POST", target.url)
        with pytest.raises(RequestFailed) as failed:
            await request.head()
        assert not failed.value.sent


@pytest.mark.req("R142")
async def test_a_secret_header_is_sent_and_written_down_nowhere(
    place: Place, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_TOKEN", SECRET)
    target.go.set()
    async with place.runtime() as rt:
        headers: dict[str, str | Secret] = {"Authorization": Secret("env", "LLM_TOKEN")}
        request = await rt.request("llm-1", "POST", target.url, headers=headers)
        await request.read()
    assert target.asked[0][1]["Authorization"] == SECRET
    found = [path for path in Path(place.home).rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert found == []


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://a b/", "gopher://x", "", "http://user:word@host/"])
async def test_an_address_that_is_none_is_refused(place: Place, url: str) -> None:
    async with place.runtime() as rt:
        with pytest.raises(InvalidInput):
            await rt.request("x", "GET", url)


async def test_what_was_under_way_when_its_program_was_killed_is_not_made_again(place: Place, target: Target) -> None:
    import os
    import signal

    async with place.runtime() as rt:
        request = await rt.request("llm-1", "POST", target.url)
        await request.head()
        os.kill(request.record.pid, signal.SIGKILL)
        until(lambda: not os.path.exists(f"/proc/{request.record.pid}"))
        again = await rt.request("llm-1", "POST", target.url)
        assert again.level == "lost"
    assert len(target.asked) == 1


async def test_a_large_answer_is_kept_whole(place: Place, target: Target) -> None:
    target.first, target.times = b"x" * 1_000_000, 40
    target.go.set()
    async with place.runtime() as rt:
        body = await (await rt.request("large", "POST", target.url)).read()
    assert len(body) == 40_000_006
    assert body.endswith(b"xsecond")
