"""Requests that no credential can make right: foreign hosts, foreign pages, keys in addresses, doubled headers."""

from __future__ import annotations

import pytest

from perdure.errors import InvalidInput
from perdure.server import routes
from perdure.server.access import ServerAddress, client_address, read_network, read_origin
from tests.support.http_server import make_key, make_session, request, serving

OWN = "http://127.0.0.1:7420"
FOREIGN_HOSTS = [
    "evil", "127.0.0.1.evil", "localhost:1", "[::ffff:7f00:1]", "127.0.0.1:7421", "localhost:7420@evil", "",
    "127.0.0.1:7420.evil", "2130706433", "0x7f.1", "localhost.", "127.0.0.1:07420", "rebind.test:7420",
    "192.0.2.1:7420",
]  # fmt: skip


@pytest.mark.threat("T4")
@pytest.mark.parametrize("host", FOREIGN_HOSTS)
@pytest.mark.parametrize("path", ["/", "/healthz", "/v1", "/v1/session", "/assets/x", "/nothing"])
async def test_a_foreign_host_is_refused_before_anything_else(ask_once, host, path):
    for method in ("GET", "POST", "OPTIONS"):
        reply = await ask_once(method, path, headers={"host": host})
        assert (reply.status, reply.code) == (421, "wrong_host")


@pytest.mark.parametrize("host", ["127.0.0.1:7420", "localhost:7420", "[::1]:7420", "127.0.0.1", "LOCALHOST:7420"])
async def test_the_names_of_this_machine_are_known(ask_once, host):
    assert (await ask_once("GET", "/healthz", headers={"host": host})).status == 200


@pytest.mark.threat("T4")
async def test_behind_a_proxy_only_its_origin_is_known(quick_url):
    async with serving(quick_url, host="0.0.0.0", origins=("https://perdure.example",)) as server:
        for host, expected in [("perdure.example", 200), ("127.0.0.1:7420", 421), ("192.0.2.7:7420", 421)]:
            assert (await request(server, "GET", "/healthz", headers={"host": host})).status == expected


def test_without_an_origin_an_address_is_known_beyond_loopback_and_a_name_is_not():
    place = ServerAddress("0.0.0.0", 7420)
    assert place.origin_of("192.0.2.7:7420") == "http://192.0.2.7:7420"
    assert place.origin_of("[2001:db8::1]:7420") == "http://[2001:db8::1]:7420"
    assert place.origin_of("evil.example:7420") is None
    assert place.origin_of("192.0.2.7:7421") is None


def _writing_routes():
    return [route for route in routes() if route.writes]


def _address_of(route):
    return "/".join("x" if part.startswith("{") else part for part in route.path.split("/"))


CROSS_SITE = [
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"origin": "http://127.0.0.1:9999"},
    {"origin": "null"},
    {"origin": "http://evil.example"},
    {"origin": "https://127.0.0.1:7420"},
]


@pytest.mark.threat("T5")
@pytest.mark.parametrize("headers", CROSS_SITE)
@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "application/x-www-form-urlencoded"])
async def test_no_page_of_another_origin_changes_anything(quick_url, headers, content_type):
    async with serving(quick_url, rate=10_000, burst=10_000) as server:
        cookie, key = await make_session(server, "admin"), await make_key(server, "admin")
        client = {"perdure-client": "dashboard/1", "content-type": content_type}
        for route in _writing_routes():
            if not route.path.startswith("/v1"):
                continue
            for credential in ({"cookie": cookie}, {"authorization": f"Bearer {key}"}):
                sent = {**headers, **client, **credential}
                reply = await request(server, route.method, _address_of(route), body=b"{}", headers=sent)
                assert (reply.status, reply.code) == (403, "cross_site"), route.name


@pytest.mark.threat("T5")
async def test_a_session_changes_something_only_from_a_page_of_ours(quick_url):
    async with serving(quick_url, rate=10_000, burst=10_000) as server:
        cookie = {"cookie": await make_session(server, "admin")}
        client = {"perdure-client": "dashboard/1"}
        for route in _writing_routes():
            if not route.path.startswith("/v1"):
                continue
            for extra in (
                {},
                client,
                {"origin": OWN},
                {"sec-fetch-site": "same-origin"},
                {"sec-fetch-site": "none", **client},
            ):
                reply = await request(server, route.method, _address_of(route), body=b"{}", headers={**cookie, **extra})
                assert reply.status == 403, route.name
                assert reply.code in ("cross_site", "no_client")
        for proof in ({"origin": OWN}, {"sec-fetch-site": "same-origin"}):
            moved = await request(
                server, "POST", "/v1/session/namespace", body={"namespace": "x"}, headers={**cookie, **client, **proof}
            )
            assert moved.json["code"] == "not_allowed"  # past the guard: this session is not local


@pytest.mark.threat("T5")
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_a_page_of_another_site_reads_nothing(quick_url, site):
    async with serving(quick_url) as server:
        key = await make_key(server, "admin")
        for headers in ({"cookie": await make_session(server, "admin")}, {"authorization": f"Bearer {key}"}):
            reply = await request(server, "GET", "/v1", headers={**headers, "sec-fetch-site": site})
            assert (reply.status, reply.code) == (403, "cross_site")


async def test_nothing_allows_another_origin_to_read(quick_url):
    async with serving(quick_url) as server:
        key = await make_key(server, "admin")
        reply = await request(server, "GET", "/v1", key=key, headers={"origin": "http://evil.example"})
        assert not [name for name in reply.headers if name.startswith("access-control")]
        options = await request(server, "OPTIONS", "/v1", headers={"origin": "http://evil.example"})
        assert options.status in (403, 405) and "access-control-allow-origin" not in options.headers


@pytest.mark.parametrize(
    "name", ["host", "authorization", "cookie", "origin", "content-type", "idempotency-key", "perdure-namespace"]
)
async def test_a_header_that_is_sent_twice_is_refused(ask_once, name):
    value = "127.0.0.1:7420" if name == "host" else "x"
    reply = await ask_once("GET", "/v1", headers=[(name, value), (name, value)])
    assert (reply.status, reply.code) == (400, "bad_request")
    assert name in reply.json["detail"]


@pytest.mark.parametrize(
    "peer, told, expected",
    [
        ("192.0.2.1", "198.51.100.7", "192.0.2.1"),  # a stranger tells us nothing
        ("10.0.0.1", "198.51.100.7", "198.51.100.7"),
        ("10.0.0.1", "6.6.6.6, 198.51.100.7, 10.0.0.2", "198.51.100.7"),
        ("10.0.0.1", "6.6.6.6, nonsense, 10.0.0.2", "10.0.0.2"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", None, "10.0.0.1"),
        ("10.0.0.1", "2001:db8::7", "2001:db8::7"),
        ("", "198.51.100.7", ""),
    ],
)
def test_only_a_trusted_proxy_says_where_a_request_comes_from(peer, told, expected):
    assert client_address(peer, told, [read_network("10.0.0.0/8")]) == expected


async def test_the_rate_of_an_address_follows_it_through_a_proxy(quick_url):
    async with serving(quick_url, rate=1, burst=1, trusted_proxies=("10.0.0.0/8",)) as server:
        for told, expected in [("192.0.2.1", 200), ("192.0.2.2", 200), ("192.0.2.1", 429)]:
            reply = await request(server, "GET", "/healthz", address="10.0.0.9", headers={"x-forwarded-for": told})
            assert reply.status == expected


@pytest.mark.parametrize(
    "text", ["perdure.example", "https://", "https://x/path", "ftp://x", "https://a@b", "https://x?y"]
)
def test_an_origin_that_is_none_is_refused(text):
    with pytest.raises(InvalidInput):
        read_origin(text)


def test_an_origin_is_kept_as_browsers_write_it():
    assert read_origin("HTTPS://Perdure.Example:443/") == "https://perdure.example"
    assert read_origin("http://[::1]:7420") == "http://[::1]:7420"
