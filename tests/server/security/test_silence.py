"""What the server never says: secrets, where its store is, how it failed, and characters that control a terminal."""

from __future__ import annotations

import logging
import re

import pytest
from msgspec import structs

from perdure import errors
from perdure.server import pipeline
from perdure.server.process.access_log import JsonLines
from perdure.server.table import Nothing, routes
from tests.support.http_server import make_key, make_session, request, serving

QUICK = {"rate": 1_000_000, "burst": 1_000_000}
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
TELLING = "SELECT secret FROM tasks; /srv/private/p.db HOME=/root Traceback perdure-9.9.9"


@pytest.mark.threat("T10")
async def test_no_line_of_the_log_holds_what_a_caller_wrote_or_a_control_character(quick_url, caplog):
    caplog.set_level(logging.DEBUG, "perdure.server")
    async with serving(quick_url, **QUICK) as server:
        key = await make_key(server, "admin")
        for part in ("%1b%5b31mred", "%e2%80%aeevil", "%e2%80%8bzero", "%0d%0aforged", "x" * 5000):
            await request(server, "GET", f"/v1/tasks/{part}", key=key, query="text=%1b%5b2J")
            await request(server, "POST", f"/v1/tasks/{part}/pause", key=key, body={"message": "\x1b[2J\u202e"})
        await request(server, "\x1b[31mGET", "/v1", key=key)
    lines = [JsonLines().format(record) for record in caplog.records]
    assert lines and not any(CONTROL.search(line) for line in lines)
    assert not any("forged" in line or "evil" in line or "xxxx" in line for line in lines)


@pytest.mark.threat("T20")
async def test_no_credential_is_in_an_answer_a_log_or_the_store(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    url = f"sqlite://{tmp_path}/store/p.db"
    told = b""
    async with serving(url, **QUICK) as server:
        keys = [await make_key(server, "admin", name=f"key {number}") for number in range(20)]
        cookies = [(await make_session(server, "admin")).partition("=")[2] for _ in range(10)]
        codes = [await server.desk.sessions.make_link("ada", ("tasks:read",)) for _ in range(10)]
        for route in routes():
            if route.method == "GET" and not route.streams and not route.path.endswith("/wait"):
                path = "/".join("x" if part.startswith("{") else part for part in route.path.split("/"))
                told += (await request(server, "GET", path, key=keys[0])).body
                told += (await request(server, "GET", path, headers={"cookie": f"perdure-7420={cookies[0]}"})).body
        told += (await request(server, "GET", "/v1", query=f"key={keys[1]}")).body
        told += (await request(server, "POST", "/v1/session", body={"code": codes[1] + "x"})).body
    told += "\n".join(record.getMessage() + str(record.__dict__) for record in caplog.records).encode()
    for file in (tmp_path / "store").iterdir():
        told += file.read_bytes()
    secrets = [*(key[-43:] for key in keys), *cookies, *codes]
    assert [secret for secret in secrets if secret.encode() in told] == []


@pytest.mark.threat("T26")
@pytest.mark.parametrize(
    "failure",
    [ValueError(TELLING), RuntimeError(TELLING), OSError(2, TELLING, "/srv/private"), errors.StoreUnreachable(TELLING),
     errors.StoreDamaged(TELLING), errors.StoreFull(TELLING), errors.StoreBusy(TELLING), errors.StoreRefused(TELLING)],
    ids=lambda failure: type(failure).__name__,
)  # fmt: skip
async def test_no_failure_of_the_server_tells_where_or_how_it_failed(failure, memory_url, monkeypatch):
    async def fail(_):
        raise failure.with_traceback(None)

    plain = {"handler": fail, "query": Nothing, "body": None, "once": "no", "match": "no", "headers": {}}
    table = tuple(structs.replace(route, **plain) for route in routes())
    monkeypatch.setattr(pipeline, "routes", lambda: table)
    async with serving(memory_url, **QUICK) as server:
        key = await make_key(server, "admin")
        for route in routes():
            path = "/".join("x" if part.startswith("{") else part for part in route.path.split("/"))
            reply = await request(server, route.method, path, key=key)
            if route.who == "session":
                continue
            assert reply.status >= 500, route.name
            for word in ("SELECT", "/srv", "HOME", "Traceback", "9.9.9", "Error"):
                assert word.encode() not in reply.body, (route.name, word)
            assert reply.json["request_id"] and reply.json["kept"] and reply.json["do"]


@pytest.mark.threat("T13")
async def test_wrong_callback_tokens_are_all_answered_alike_then_limited_and_in_no_log(quick_url, caplog, clock):
    caplog.set_level(logging.DEBUG)
    async with serving(quick_url, rate=10, burst=50) as server:
        answers = []
        for number in range(80):
            token = f"guess{number:04d}" + "a" * 34
            answers.append(await request(server, "POST", f"/v1/callbacks/{token}", body={"n": 1}))
        assert {answer.status for answer in answers} == {404, 429}
        assert len({str({**answer.json, "request_id": ""}) for answer in answers if answer.status == 404}) == 1
        assert all("retry-after" in answer.headers for answer in answers if answer.status == 429)
        clock.advance(minutes=1)
        assert (await request(server, "GET", "/v1/callbacks/guess0001")).status in (405, 429)
    assert not any("guess" in JsonLines().format(record) for record in caplog.records)
