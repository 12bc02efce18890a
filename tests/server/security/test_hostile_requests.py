"""Requests that are made to hurt: paths, filters, sizes, patterns, smuggling, and clients that do nothing."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
import uvicorn

from perdure.server import Settings, make_app
from perdure.server.process.wire import Crowd, Limits, wire_for
from tests.support.http_server import make_key, request, serving
from tests.support.server_processes import live_server, read_all

QUICK = {"rate": 1_000_000, "burst": 1_000_000}
HOSTILE = [
    "'", '"', "';--", "' OR '1'='1", "$.a[*]", "%", "_", "\\", "a%b", "a_b", "{}", '{"a": 1}', "[1]", "a.b", "é", "🎉",
    "x' UNION SELECT 1--", "\\x00", "NULL", "%00", "/*", "1; DROP TABLE tasks", "*", "?", "a/b", "a:b", "~x", " a ",
]  # fmt: skip


@pytest.mark.threat("T14")
async def test_a_filter_finds_what_its_words_say_whatever_they_are(url):
    """Compared with the same filter in Python: nothing in a word is taken for SQL, a pattern or a path."""
    async with serving(url, **QUICK) as server:
        key = await make_key(server, "admin")
        app = server.app_of("default")
        tasks = {f"t{number}": text for number, text in enumerate(HOSTILE)}
        for id, text in tasks.items():
            await app.tasks.create(id, state={}, tags={text: text, "both": text}, name=f"name {text} end", agent=text)
        for text in HOSTILE:
            for field, expected in {
                f"tag.{text}": {id for id, own in tasks.items() if own == text},
                "tag.both": {id for id, own in tasks.items() if own == text},
                "agent": {id for id, own in tasks.items() if own == text},
                "text": {
                    id for id, own in tasks.items() if text.lower() in f"name {own} end".lower() or text.lower() in id
                },
            }.items():
                query = f"limit=200&{_quoted(field)}={_quoted(text)}"
                reply = await request(server, "GET", "/v1/tasks", query=query, key=key)
                assert reply.status == 200, (field, text, reply.body)
                found = {item["id"] for item in reply.json["items"]}
                assert found == expected, (field, text)
        for text in HOSTILE:
            for name in ("sort", "cursor", "status"):
                reply = await request(server, "GET", "/v1/tasks", query=f"{name}={_quoted(text)}", key=key)
                assert reply.status == 400, (name, text)


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")


@pytest.mark.threat("T15")
@pytest.mark.parametrize(
    "path",
    ["/v1/tasks/%2e%2e", "/v1/tasks/..", "/v1/tasks/.", "/v1/tasks/%00", "/v1/tasks/%c0%ae", "/v1/tasks/%e0%80%ae",
     "/v1//tasks", "/v1/tasks/", "/v1/tasks//wait", "/v1/tasks/one/", "/v1/tasks/one;a=b", "/v1/tasks\\one",
     "/v1/tasks/one%2Fwait", "/v1/Tasks/one", "/v1/tasks/%zz", "/v1/tasks/%", "/v1/tasks/~" + "0" * 24,
     "/v1/tasks/" + "a" * 7000, "/assets/%2e%2e/%2e%2e/etc/passwd", "/assets/../../etc/passwd", "/%2fetc/passwd"],
)  # fmt: skip
async def test_a_path_leads_to_its_own_task_or_nowhere(path, memory_url):
    async with serving(memory_url, **QUICK) as server:
        await server.app_of("default").tasks.create("one", state={})
        reply = await request(server, "GET", path, key=await make_key(server, "admin"))
        assert reply.status == 404
        assert b"root:" not in reply.body


@pytest.mark.threat("T16")
@pytest.mark.parametrize(
    "body, status",
    [
        (b'{"id": "' + b"a" * (3 * 1024 * 1024) + b'"}', 413),
        (b"[" * 100_000 + b"]" * 100_000, 400),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, 400),
        (b'{"id": "x", "state": {"n": ' + b"9" * 5000 + b"}}", 400),
        (b'{"id": "x", "state": {"n": 1e999999}}', 400),
        (b'{"id": "x", "id": "y"}', 400),
        (b'{"id": "x", "state": NaN}', 400),
        (b'{"id": "x", "state": "\\ud800"}', 400),
        (b'{"id": "x", "state": "\xff"}', 400),
        (b'{"id": "x"} {"id": "y"}', 400),
        (b'{"id": "x", "state": {' + b",".join(b'"%d": 0' % n for n in range(150_000)) + b"}}", 201),
    ],
    ids=[
        "large",
        "deep-list",
        "deep-object",
        "long-number",
        "infinite",
        "twice",
        "nan",
        "surrogate",
        "latin",
        "two",
        "keys",
    ],
)
async def test_a_body_that_is_too_much_is_refused(body, status, memory_url):
    async with serving(memory_url, state_limit=2 * 1024 * 1024, **QUICK) as server:
        key = await make_key(server, "admin")
        reply = await request(server, "POST", "/v1/tasks", body=body, key=key, headers={"idempotency-key": "a"})
        assert reply.status == status, reply.body[:300]


SMUGGLED = [
    b"POST /v1/tasks HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
    b"POST /v1/tasks HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    b"POST /v1/tasks HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    b"POST /v1/tasks HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"POST /v1/tasks HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    b"POST /v1/tasks HTTP/1.1\r\nHost: {host}\r\nContent-Length: +5\r\n\r\nabcde",
    b"POST /v1/tasks HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n",
    b"POST /v1/tasks HTTP/1.1\r\nHost: {host}\r\nX: a\r\n b\x00c\r\n\r\n",
    b"GET /v1 HTTP/1.1\r\nHost: {host}\r\nHost: evil\r\n\r\n",
    b"GET http://evil/v1 HTTP/1.1\r\nHost: {host}\r\n\r\n",
    b"GET /v1 HTTP/1.1\r\n\r\n",
    b"GET /v1 HTTP/1.1\r\nHost: {host}\r\n" + b"".join(b"X-%d: a\r\n" % n for n in range(1000)) + b"\r\n",
    b"GET /v1 HTTP/1.1\r\nHost: {host}\r\nX: " + b"a" * 20_000 + b"\r\n\r\n",
    b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: {host}\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
]


@pytest.mark.threat("T16", "T4")
def test_a_request_that_two_readers_would_read_differently_is_refused_and_the_server_lives(tmp_path):
    with live_server(f"sqlite://{tmp_path}/store/p.db", command="up") as server:
        before = _peak_kb(server.process.pid)
        for raw in SMUGGLED:
            with server.connect() as connection:
                with suppress(OSError):
                    connection.sendall(raw.replace(b"{host}", server.host.encode()))
                    connection.shutdown(socket.SHUT_WR)
                answer = read_all(connection)
            assert not answer or answer.split()[1][:1] == b"4", (raw[:100], answer[:200])
            assert answer.count(b"HTTP/1.1 ") <= 1, raw[:100]
        assert server.ask("GET", "/healthz").status == 200
        assert _peak_kb(server.process.pid) - before < 32 * 1024


def _peak_kb(pid: int) -> int:
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))


@contextmanager
def short_tempered(url: str, limits: Limits) -> Iterator[tuple[str, int]]:
    """A server whose patience is short."""
    door = socket.create_server(("127.0.0.1", 0))
    port = door.getsockname()[1]
    application = make_app(url, Settings(port=port))
    config = uvicorn.Config(application, http=wire_for(Crowd(limits)), ws="none", log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [door]}, daemon=True)
    thread.start()
    try:
        yield "127.0.0.1", port
    finally:
        server.should_exit = True
        thread.join(30)
        door.close()


@pytest.mark.threat("T17")
def test_clients_that_do_nothing_are_closed_and_others_are_served(tmp_path):
    limits = Limits(head_seconds=0.5, body_seconds=0.5, body_rate=10**9, strangers=500)
    with short_tempered(f"sqlite://{tmp_path}/store/p.db", limits) as place:
        host = f"Host: {place[0]}:{place[1]}\r\n".encode()
        silent = [socket.create_connection(place, 30) for _ in range(60)]
        for number, connection in enumerate(silent):
            post = (
                b"POST /v1/session HTTP/1.1\r\n"
                + host
                + b"Content-Type: application/json\r\nContent-Length: 90\r\n\r\n{"
            )
            connection.sendall([b"G", b"GET / HTTP/1.1\r\n" + host, post][number % 3])
        with socket.create_connection(place, 30) as good:
            good.sendall(b"GET /healthz HTTP/1.1\r\n" + host + b"Connection: close\r\n\r\n")
            assert read_all(good).startswith(b"HTTP/1.1 200")
        for connection in silent:
            with connection:
                answer = read_all(connection)  # ends because the server closes it, not the client
                assert not answer or answer.startswith(b"HTTP/1.1 408"), answer[:100]


@pytest.mark.threat("T17")
def test_one_address_has_so_many_connections_without_a_credential(tmp_path):
    with short_tempered(f"sqlite://{tmp_path}/store/p.db", Limits(strangers=5)) as place:
        held = [socket.create_connection(place, 30) for _ in range(5)]
        with socket.create_connection(place, 30) as one_more:
            answer = read_all(one_more)
        assert b"too_many_connections" in answer or answer == b""
        for connection in held:
            connection.close()


@pytest.mark.threat("T18")
async def test_a_pattern_that_would_never_end_is_answered(quick_url):
    async with serving(quick_url, **QUICK) as server:
        task = await server.app_of("default").tasks.create("one", state={})
        await task.pause("Which?", reason="human_input", schema={"type": "string", "pattern": "^(a+)+$"})
        key = await make_key(server, "admin")
        question = (await request(server, "GET", "/v1/inbox", key=key)).json["items"][0]["id"]
        reply = await request(server, "POST", f"/v1/inbox/{question}/answer", key=key, body={"value": "a" * 60 + "!"})
        assert reply.status == 422, json.dumps(reply.json)
