"""API keys, links, sessions and Unix peers, as a caller uses them."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest

from perdure import Perdure
from perdure.errors import Conflict, InvalidInput
from perdure.server.credentials import PRESETS, SCOPES, scopes_of
from tests.support.http_server import make_key, make_session, request, serving

DASHBOARD = {"perdure-client": "dashboard/1", "origin": "http://127.0.0.1:7420"}


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_key_says_who_asks_in_which_namespace(url):
    async with serving(url) as server:
        key = await make_key(server, "viewer", namespace="team", name="ci of team")
        me = await request(server, "GET", "/v1/session", key=key)
        assert me.status == 200
        assert (me.json["name"], me.json["namespace"], me.json["how"]) == ("ci of team", "team", "key")
        assert set(me.json["scopes"]) == set(PRESETS["viewer"])


@pytest.mark.parametrize(
    "text", ["", "prd_", "prd_aaaaaaaaaaaa_" + "a" * 43, "nonsense", "prd_aaaaaaaaaaaa_é" + "a" * 42, "x" * 5000]
)
async def test_an_unknown_key_is_refused(ask_once, text):
    reply = await ask_once("GET", "/v1", key=text)
    assert (reply.status, reply.code) == (401, "bad_credential")
    assert reply.headers["www-authenticate"].startswith("Bearer")


async def test_the_right_id_with_a_wrong_secret_is_refused(quick_url):
    async with serving(quick_url) as server:
        key = await make_key(server, "viewer")
        reply = await request(server, "GET", "/v1", key=key[:-43] + "A" * 43)
        unknown = await request(server, "GET", "/v1", key=f"prd_{'a' * 12}_{'A' * 43}")
        assert (reply.status, reply.code) == (401, "bad_credential")
        assert reply.json["detail"] == unknown.json["detail"]


@pytest.mark.threat("T21")
async def test_a_store_holds_no_secret_of_a_key(tmp_path):
    url = f"sqlite://{tmp_path}/p.db"
    async with serving(url) as server:
        key = await make_key(server, "viewer")
        cookie = await make_session(server, "viewer")
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert key[-43:].encode() not in stored
    assert cookie.partition("=")[2].encode() not in stored


async def test_a_revoked_key_is_refused_at_once(quick_url):
    async with serving(quick_url) as server:
        key = await make_key(server, "viewer")
        assert (await request(server, "GET", "/v1", key=key)).status == 200
        [kept] = await server.desk.keys.all()
        await server.desk.keys.revoke(kept)
        assert (await request(server, "GET", "/v1", key=key)).status == 401


async def test_a_key_ends_when_it_was_said_to(quick_url, clock):
    async with serving(quick_url) as server:
        until = clock.now_ms() + 60_000
        key = (await server.desk.keys.make("short", ["viewer"], until=until)).text
        assert (await request(server, "GET", "/v1", key=key)).status == 200
        clock.advance(minutes=1)
        assert (await request(server, "GET", "/v1", key=key)).status == 401


@pytest.mark.threat("T21")
async def test_a_rotated_key_is_good_for_the_overlap_beside_the_new_one(quick_url, clock):
    async with serving(quick_url) as server:
        old = await make_key(server, "viewer")
        [kept] = await server.desk.keys.all()
        new = (await server.desk.keys.rotate(kept, timedelta(hours=1))).text
        assert [(await request(server, "GET", "/v1", key=key)).status for key in (old, new)] == [200, 200]
        clock.advance(hours=1)
        assert [(await request(server, "GET", "/v1", key=key)).status for key in (old, new)] == [401, 200]


async def test_a_revoked_key_cannot_be_rotated(quick_url):
    async with serving(quick_url) as server:
        await make_key(server, "viewer")
        [kept] = await server.desk.keys.all()
        await server.desk.keys.revoke(kept)
        [kept] = await server.desk.keys.all()
        with pytest.raises(Conflict):
            await server.desk.keys.rotate(kept)


async def test_the_last_use_of_a_key_is_kept_to_the_minute(quick_url, clock):
    async with serving(quick_url) as server:
        key = await make_key(server, "viewer", "keys:admin")
        clock.advance(hours=2, seconds=17)
        await request(server, "GET", "/v1", key=key)
        await server.desk.identities.close()
        [listed] = (await request(server, "GET", "/v1/api-keys", key=key)).json["items"]
        assert listed["used_at"].startswith("2030-01-01T02:00:00")
        assert "hash" not in listed


@pytest.mark.threat("T21")
async def test_a_key_makes_only_keys_with_scopes_it_has(quick_url):
    async with serving(quick_url) as server:
        key = await make_key(server, "viewer", "keys:admin")
        make = {"method": "POST", "path": "/v1/api-keys", "key": key, "headers": {"idempotency-key": "1"}}
        wider = await request(server, **make, body={"name": "wide", "scopes": ["operator"]})
        assert (wider.status, wider.code) == (403, "wider_than_yours")
        made = await request(server, **make, body={"name": "narrow", "scopes": ["viewer"]})
        assert made.status == 201
        assert (await request(server, "GET", "/v1", key=made.json["key"])).status == 200


async def test_keys_of_another_namespace_are_not_there(quick_url):
    async with serving(quick_url) as server:
        other = await make_key(server, "admin", namespace="other")
        key = await make_key(server, "admin")
        [kept] = await server.desk.keys.all("other")
        for method, path in [("PATCH", ""), ("DELETE", ""), ("POST", "/rotate")]:
            body = None if method == "DELETE" else {}
            reply = await request(
                server, method, f"/v1/api-keys/{kept.key}{path}", key=key, body=body, headers={"if-match": '"v1"'}
            )
            assert reply.status == 404
        assert (await request(server, "GET", "/v1", key=other)).status == 200


async def test_a_key_is_narrowed_only_from_the_version_that_was_seen(quick_url):
    async with serving(quick_url) as server:
        key = await make_key(server, "admin")
        [kept] = await server.desk.keys.all()
        path = f"/v1/api-keys/{kept.key}"
        narrow = {"name": "less", "scopes": ["viewer", "keys:admin"]}
        missing = await request(server, "PATCH", path, key=key, body=narrow)
        stale = await request(server, "PATCH", path, key=key, body=narrow, headers={"if-match": '"v7"'})
        done = await request(server, "PATCH", path, key=key, body=narrow, headers={"if-match": '"v1"'})
        assert (missing.status, stale.status, done.status) == (428, 412, 200)
        assert done.headers["etag"] == '"v2"' and done.json["name"] == "less"
        wider = await request(server, "PATCH", path, key=key, body={"scopes": ["admin"]}, headers={"if-match": '"v2"'})
        assert wider.status == 422


@pytest.mark.threat("T21")
async def test_a_key_in_the_address_is_refused_with_a_hint(quick_url):
    async with serving(quick_url) as server:
        key = await make_key(server, "viewer")
        for query in (f"key={key}", f"limit=3&api_key={key}", f"access_token={key}", f"x={key}"):
            reply = await request(server, "GET", "/v1", query=query)
            assert (reply.status, reply.code) == (400, "key_in_url")
            assert "Authorization" in reply.json["do"] and key not in reply.body.decode()


def test_presets_are_sets_of_known_scopes():
    assert scopes_of(["admin"]) == SCOPES
    assert scopes_of(["tasks:write", "viewer"]) == ("tasks:read", "data:read", "tasks:write")
    with pytest.raises(InvalidInput, match="unknown scope 'taks:read'"):
        scopes_of(["taks:read"])
    with pytest.raises(InvalidInput, match="at least one"):
        scopes_of([])


@pytest.mark.parametrize("name", ["", " x", "a\nb", "a\u202eb", "x" * 101])
async def test_a_name_that_cannot_be_read_is_refused(quick_url, name):
    async with serving(quick_url) as server:
        with pytest.raises(InvalidInput):
            await server.desk.keys.make(name, ["viewer"])


def test_no_user_can_open_the_namespace_of_the_server(quick_url):
    from perdure.server.credentials.vault import NAMESPACE

    with pytest.raises(InvalidInput):
        Perdure(quick_url, namespace=NAMESPACE)


# ── links and sessions ───────────────────────────────────────────────────────────────────────────


@pytest.mark.threat("T22")
async def test_a_link_gives_one_session_and_is_then_used_up(url):
    async with serving(url) as server:
        code = await server.desk.sessions.make_link("ada", scopes_of(["operator"]))
        begun = await request(server, "POST", "/v1/session", body={"code": code})
        again = await request(server, "POST", "/v1/session", body={"code": code})
        assert (begun.status, again.status, again.code) == (201, 401, "link_used")
        cookie = begun.headers["set-cookie"]
        assert cookie.startswith("perdure-7420=")
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Path=/" in cookie and "Secure" not in cookie
        me = await request(server, "GET", "/v1/session", headers={"cookie": cookie.partition(";")[0]})
        assert (me.status, me.json["name"], me.json["how"]) == (200, "ada", "session")


@pytest.mark.threat("T22")
async def test_a_link_is_too_old_after_ten_minutes(quick_url, clock):
    async with serving(quick_url) as server:
        code = await server.desk.sessions.make_link("ada", scopes_of(["viewer"]))
        clock.advance(minutes=10)
        assert (await request(server, "POST", "/v1/session", body={"code": code})).status == 401


async def test_over_https_the_cookie_is_bound_to_the_host(quick_url):
    async with serving(quick_url, host="0.0.0.0", origins=("https://perdure.example",)) as server:
        code = await server.desk.sessions.make_link("ada", scopes_of(["viewer"]))
        headers = {"host": "perdure.example", "origin": "https://perdure.example"}
        begun = await request(server, "POST", "/v1/session", body={"code": code}, headers=headers)
        assert begun.headers["set-cookie"].startswith("__Host-perdure=") and "Secure" in begun.headers["set-cookie"]


@pytest.mark.threat("T22")
async def test_a_cookie_that_was_planted_before_does_not_become_the_session(quick_url):
    async with serving(quick_url) as server:
        planted = await make_session(server, "viewer")
        code = await server.desk.sessions.make_link("ada", scopes_of(["admin"]))
        headers = {"cookie": planted, **DASHBOARD}
        begun = await request(server, "POST", "/v1/session", body={"code": code}, headers=headers)
        assert begun.status == 201 and planted not in begun.headers["set-cookie"]
        assert (await request(server, "GET", "/v1", headers={"cookie": planted})).status == 401


@pytest.mark.threat("T22")
async def test_leaving_ends_the_session(quick_url):
    async with serving(quick_url) as server:
        cookie = await make_session(server, "viewer")
        left = await request(server, "DELETE", "/v1/session", headers={"cookie": cookie, **DASHBOARD})
        assert left.status == 204 and "Max-Age=0" in left.headers["set-cookie"]
        assert (await request(server, "GET", "/v1", headers={"cookie": cookie})).status == 401


async def test_a_session_lasts_twelve_hours_from_its_last_use_and_a_week_at_most(quick_url, clock):
    async with serving(quick_url) as server:
        cookie = await make_session(server, "viewer")

        async def status() -> int:
            return (await request(server, "GET", "/v1", headers={"cookie": cookie})).status

        for _ in range(15):
            clock.advance(hours=11)
            assert await status() == 200
        clock.advance(hours=11)
        assert await status() == 401
        cookie = await make_session(server, "viewer")
        clock.advance(hours=12)
        assert await status() == 401


@pytest.mark.threat("T22")
async def test_sessions_outlive_the_server_unless_its_secret_is_renewed(shared_url):
    async with serving(shared_url) as server:
        cookie = await make_session(server, "viewer")
    async with serving(shared_url) as server:
        assert (await request(server, "GET", "/v1", headers={"cookie": cookie})).status == 200
        await server.desk.vault.renew_secret()
        assert (await request(server, "GET", "/v1", headers={"cookie": cookie})).status == 401


async def test_only_a_local_session_changes_its_namespace(quick_url):
    async with serving(quick_url) as server:
        for is_local, expected in [(True, 200), (False, 403)]:
            cookie = await make_session(server, "viewer", is_local=is_local)
            headers = {"cookie": cookie, **DASHBOARD}
            moved = await request(server, "POST", "/v1/session/namespace", body={"namespace": "team"}, headers=headers)
            assert moved.status == expected
            me = await request(server, "GET", "/v1/session", headers={"cookie": cookie})
            assert me.json["namespace"] == ("team" if is_local else "default")


async def test_a_session_cannot_go_where_the_server_keeps_its_things(quick_url):
    async with serving(quick_url) as server:
        headers = {"cookie": await make_session(server, "admin", is_local=True), **DASHBOARD}
        moved = await request(server, "POST", "/v1/session/namespace", body={"namespace": " server"}, headers=headers)
        assert moved.status == 422


# ── Unix peers ───────────────────────────────────────────────────────────────────────────────────


async def test_the_peer_of_a_unix_socket_may_do_everything_as_its_user(quick_url):
    async with serving(quick_url) as server:
        me = await request(
            server, "GET", "/v1/session", peer_uid=os.geteuid(), headers={"perdure-namespace": "team", "host": "x"}
        )
        assert me.status == 200
        assert (me.json["namespace"], set(me.json["scopes"])) == ("team", set(SCOPES))


@pytest.mark.parametrize("headers", [{"x-forwarded-for": "192.0.2.1"}, {"origin": "http://evil"}, {"via": "1.1 x"}])
async def test_a_peer_that_speaks_for_another_is_refused(ask_once, headers):
    assert (await ask_once("GET", "/v1", peer_uid=os.geteuid(), headers=headers)).status == 403


async def test_a_peer_of_another_user_is_refused(ask_once):
    assert (await ask_once("GET", "/v1", peer_uid=os.geteuid() + 1)).status == 403


@pytest.mark.parametrize("namespace", [" server", "", "a\tb", "x" * 300])
async def test_a_peer_names_only_namespaces_that_users_can_have(ask_once, namespace):
    reply = await ask_once("GET", "/v1", peer_uid=os.geteuid(), headers={"perdure-namespace": namespace})
    assert reply.status == 400


# ── rates ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.threat("T19")
async def test_an_address_that_fails_often_has_to_wait_and_good_keys_do_not(quick_url, clock):
    async with serving(quick_url) as server:
        key = await make_key(server, "viewer")
        failures = [(await request(server, "GET", "/v1", key="prd_x")).status for _ in range(22)]
        assert failures == [401] * 20 + [429] * 2
        assert (await request(server, "GET", "/v1", key="prd_x", address="192.0.2.9")).status == 401
        assert (await request(server, "GET", "/v1", key=key)).status == 200
        clock.advance(seconds=1)
        assert (await request(server, "GET", "/v1", key="prd_x")).status == 401


@pytest.mark.threat("T19")
async def test_a_key_that_asks_too_often_is_told_when_to_ask_again(quick_url, clock):
    async with serving(quick_url, rate=2, burst=3) as server:
        busy, other = await make_key(server, "viewer"), await make_key(server, "viewer", name="other")
        replies = [await request(server, "GET", "/v1", key=busy) for _ in range(4)]
        assert [reply.status for reply in replies] == [200, 200, 200, 429]
        assert replies[3].headers["retry-after"] == "1" and "ratelimit-policy" in replies[3].headers
        assert (await request(server, "GET", "/v1", key=other)).status == 200
        clock.advance(seconds=1)
        assert [(await request(server, "GET", "/v1", key=busy)).status for _ in range(3)] == [200, 200, 429]


@pytest.mark.threat("T19")
async def test_an_address_without_a_credential_has_a_rate_too(quick_url, clock):
    async with serving(quick_url, rate=1, burst=2) as server:
        statuses = [(await request(server, "GET", "/healthz")).status for _ in range(3)]
        assert statuses == [200, 200, 429]
        assert (await request(server, "GET", "/healthz", address="192.0.2.9")).status == 200
