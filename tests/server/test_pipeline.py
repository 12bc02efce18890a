"""Requests on their way to a handler: paths, bodies, problems."""

from __future__ import annotations

from typing import Any

import pytest

from perdure import Perdure
from perdure.server import Caller, Server, Settings
from perdure.server.http.router import decode_segment
from tests.support.asgi import send_to
from tests.support.http_server import make_key, request, serving


class Everybody:
    async def identify(self, request: Any, route: Any) -> Caller:
        return Caller("default", frozenset({"tasks:read"}), "ada", "key", "k1")


@pytest.fixture
def ask(quick_url):
    async def ask(method: str, path: str, *, query: str = "", body: bytes = b"", **headers: str) -> tuple[int, Any]:
        server = Server(lambda namespace: Perdure(quick_url, namespace=namespace), Settings(), None, Everybody())
        try:
            return await send_to(server, method, path, query=query, body=body, headers=headers)
        finally:
            await server.close()

    return ask


async def test_a_server_says_what_it_is(ask):
    status, about = await ask("GET", "/v1")
    assert status == 200
    assert about["namespace"] == "default"


@pytest.mark.parametrize("path", ["/v1/", "//v1", "/V1", "/v1/none", "v1", "/v1%2F"])
async def test_an_unknown_address_is_not_found(ask, path):
    status, problem = await ask("GET", path)
    assert (status, problem["code"]) == (404, "not_found")


async def test_an_unknown_method_names_those_that_are_allowed(ask):
    status, problem = await ask("DELETE", "/v1")
    assert (status, problem["code"]) == (405, "method_not_allowed")
    assert "GET" in problem["do"]


async def test_an_unknown_parameter_is_refused(ask):
    status, problem = await ask("GET", "/v1", query="lmit=3")
    assert (status, problem["code"]) == (400, "bad_request")


@pytest.mark.parametrize("segment", [b"", b"%", b"%4", b"%zz", b"%00", b"%c0%ae", b"%ff"])
def test_a_segment_that_is_no_text_is_refused(segment):
    assert decode_segment(segment) is None


@pytest.mark.parametrize("segment, text", [(b"a%2Fb", "a/b"), (b"a:b", "a:b"), (b"%F0%9F%8E%89", "🎉"), (b"..", "..")])
def test_a_segment_may_hold_any_character_of_an_id(segment, text):
    assert decode_segment(segment) == text


@pytest.mark.parametrize("query", ["version=null", "until=0.5", "since=1795012115", "archived=null"])
async def test_a_parameter_is_read_no_more_loosely_than_the_contract_says(ask, query):
    status, problem = await ask("GET", "/v1/tasks", query=query)
    assert (status, problem["code"]) == (400, "bad_request")


@pytest.mark.parametrize(
    "accept, expected",
    [("*/*", 200), ("application/*", 200), ("text/html, application/json;q=0.1", 200), ("", 200), ("text/html", 406),
     ("application/json;q=0, text/html", 406)],
)  # fmt: skip
async def test_a_media_type_that_a_route_does_not_have_is_not_acceptable(ask, accept, expected):
    status, _ = await ask("GET", "/v1", accept=accept)
    assert status == expected


async def test_a_body_that_may_be_left_out_needs_no_content_type(quick_url):
    async with serving(quick_url) as server:
        key = await make_key(server, "admin")
        await server.app_of("default").tasks.create("one", state={})
        wrong = await request(server, "POST", "/v1/tasks/one/cancel", key=key, headers={"content-type": "text/plain"})
        unnamed = await request(
            server, "POST", "/v1/tasks/one/cancel", key=key, body=b"{}", headers={"content-type": ""}
        )
        empty = await request(server, "POST", "/v1/tasks/one/cancel", key=key)
        assert (wrong.status, unnamed.status, empty.status) == (415, 415, 200)


async def test_lengths_of_time_in_a_config_are_seconds(quick_url):
    async with serving(quick_url) as server:
        sent = {"key": await make_key(server, "admin"), "headers": {"idempotency-key": "a"}}
        made = await request(server, "POST", "/v1/tasks", body={"id": "one", "config": {"timeout": 90}}, **sent)
        assert (made.status, made.json["config"]["timeout"]) == (201, 90.0)
        for wrong in (-1, 1e300):
            body = {"id": "two", "config": {"timeout": wrong}}
            refused = await request(
                server, "POST", "/v1/tasks", body=body, **{**sent, "headers": {"idempotency-key": "b"}}
            )
            assert (refused.status, refused.code) == (422, "invalid_input")
