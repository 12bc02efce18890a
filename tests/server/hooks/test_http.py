"""Webhooks over HTTP: made once, changed from what was seen, never a way around a scope."""

from __future__ import annotations

import pytest

from perdure._ground.reach import Sender
from perdure.server.nouns.automation import webhooks as noun
from tests.support.http_server import make_key, request, serving
from tests.support.receivers import PUBLIC

DRAFT = {"url": "https://hooks.example.com/in", "events": ["task.paused"]}
ONCE = {"Idempotency-Key": "k1"}


@pytest.fixture(autouse=True)
def resolver(monkeypatch):
    """Every name has a public address; nothing is ever sent there."""

    async def resolve(host: str, port: int) -> list[str]:
        return [PUBLIC]

    monkeypatch.setattr(noun, "Sender", lambda rules: Sender(rules, resolve=resolve))


async def test_a_webhook_is_made_shown_changed_and_removed(quick_url):
    async with serving(quick_url) as server:
        key = await make_key(server, "admin")
        made = await request(server, "POST", "/v1/webhooks", body=DRAFT, headers=ONCE, key=key)
        assert made.status == 201 and made.json["secret"].startswith("whsec_")
        path = f"/v1/webhooks/{made.json['webhook']['id']}"
        seen = await request(server, "GET", path, key=key)
        assert seen.headers["etag"] == '"v1"' and "secret" not in seen.json
        assert made.json["secret"].encode() not in seen.body
        assert (await request(server, "PATCH", path, body={"description": "x"}, key=key)).status == 428
        match = {"If-Match": '"v1"'}
        changed = await request(server, "PATCH", path, body={"description": "x"}, headers=match, key=key)
        assert (changed.status, changed.json["description"], changed.headers["etag"]) == (200, "x", '"v2"')
        stale = await request(server, "PATCH", path, body={"description": "y"}, headers=match, key=key)
        assert (stale.status, stale.code) == (412, "stale_version")
        listed = await request(server, "GET", "/v1/webhooks", key=key)
        assert [one["description"] for one in listed.json["items"]] == ["x"]
        gone = await request(server, "DELETE", path, headers={"If-Match": '"v2"'}, key=key)
        assert gone.status == 204 and (await request(server, "GET", path, key=key)).status == 404


async def test_a_repeated_request_makes_one_webhook_and_shows_its_secret_once(quick_url):
    async with serving(quick_url) as server:
        key = await make_key(server, "admin")
        assert (await request(server, "POST", "/v1/webhooks", body=DRAFT, key=key)).code == "key_required"
        first = await request(server, "POST", "/v1/webhooks", body=DRAFT, headers=ONCE, key=key)
        again = await request(server, "POST", "/v1/webhooks", body=DRAFT, headers=ONCE, key=key)
        assert (first.status, again.status) == (201, 409) and first.json["secret"].encode() not in again.body
        assert len((await request(server, "GET", "/v1/webhooks", key=key)).json["items"]) == 1


@pytest.mark.parametrize(
    "address", ["http://hooks.example.com/", "https://127.0.0.1/", "https://hooks.example.com:22/", "https://[::1]/"]
)
async def test_an_address_that_no_message_may_go_to_is_refused(quick_url, address):
    async with serving(quick_url) as server:
        key = await make_key(server, "admin")
        refused = await request(server, "POST", "/v1/webhooks", body={**DRAFT, "url": address}, headers=ONCE, key=key)
        assert (refused.status, refused.code) == (422, "refused_address")


async def test_data_needs_the_scope_that_reads_it(quick_url):
    async with serving(quick_url) as server:
        key = await make_key(server, "webhooks:admin")
        refused = await request(server, "POST", "/v1/webhooks", body={**DRAFT, "data": True}, headers=ONCE, key=key)
        assert (refused.status, refused.json["values"]) == (403, {"missing": ["data:read"]})
        admin = await make_key(server, "admin")
        made = await request(server, "POST", "/v1/webhooks", body={**DRAFT, "data": True}, headers=ONCE, key=admin)
        path = f"/v1/webhooks/{made.json['webhook']['id']}"
        moved = {"url": "https://elsewhere.example.com/"}
        taken = await request(server, "PATCH", path, body=moved, headers={"If-Match": '"v1"'}, key=key)
        assert taken.status == 403  # its messages carry data: they may not be led elsewhere


@pytest.mark.threat("T2")
async def test_pings_deliveries_and_replays_are_reached_by_their_webhook_and_namespace_only(quick_url):
    async with serving(quick_url) as server:
        key = await make_key(server, "admin")
        made = await request(server, "POST", "/v1/webhooks", body=DRAFT, headers=ONCE, key=key)
        path = f"/v1/webhooks/{made.json['webhook']['id']}"
        ping = await request(server, "POST", f"{path}/test", key=key)
        assert (ping.status, ping.json["event"], ping.json["state"]) == (202, "webhook.ping", "due")
        one = f"{path}/deliveries/{ping.json['id']}"
        again = await request(server, "POST", f"{one}/replay", key=key)
        assert again.status == 202 and again.json["body"] == ping.json["body"] and again.json["id"] != ping.json["id"]
        page = await request(server, "GET", f"{path}/deliveries", query="limit=1&state=due", key=key)
        more = await request(
            server, "GET", f"{path}/deliveries", query=f"limit=1&state=due&cursor={page.json['next']}", key=key
        )
        assert [page.json["items"][0]["id"], more.json["items"][0]["id"]] == [again.json["id"], ping.json["id"]]
        narrow = await make_key(server, "webhooks:admin")
        assert (await request(server, "GET", one, key=narrow)).json["body"] == ""
        other = await make_key(server, "admin", namespace="other")
        for method, place in (("GET", path), ("GET", one), ("POST", f"{one}/replay"), ("POST", f"{path}/rotate")):
            body = {} if place.endswith("rotate") else None
            assert (await request(server, method, place, body=body, key=other)).status == 404
        stranger = await request(server, "GET", f"/v1/webhooks/hook_x/deliveries/{ping.json['id']}", key=key)
        assert stranger.status == 404


async def test_a_rotated_secret_is_shown_once(quick_url):
    async with serving(quick_url) as server:
        key = await make_key(server, "admin")
        made = await request(server, "POST", "/v1/webhooks", body=DRAFT, headers=ONCE, key=key)
        path = f"/v1/webhooks/{made.json['webhook']['id']}"
        new = await request(server, "POST", f"{path}/rotate", body={"overlap": 60}, key=key)
        assert new.status == 200 and new.json["secret"] != made.json["secret"]
        assert new.json["webhook"]["rotating_until"] is not None
        assert (await request(server, "POST", f"{path}/rotate", body={"overlap": 10**9}, key=key)).status == 422
