"""A request that is repeated with the same Idempotency-Key is carried out once."""

from __future__ import annotations

import asyncio
import os

import pytest

from perdure._ground.ids import Process
from perdure.server.http.problems import HttpProblem
from perdure.server.http.repeats import Answers, KeptAnswer
from perdure.server.http.requests import Answer
from tests.support.http_server import make_key, request, serving


@pytest.mark.parametrize("path, body", [("/v1/tasks", {"id": "one"})])
async def test_a_repeated_request_has_the_first_answer_and_one_effect(url, path, body):
    async with serving(url) as server:
        key = await make_key(server, "admin")
        sent = {"key": key, "headers": {"idempotency-key": "a"}}
        first = await request(server, "POST", path, body=body, **sent)
        again = await request(server, "POST", path, body=body, **sent)
        other = await request(server, "POST", path, body={"id": "two"}, **sent)
        assert (first.status, again.status, again.json) == (201, 201, first.json)
        assert again.headers["perdure-repeated"] == "true"
        assert (other.status, other.code) == (422, "key_reused")
        assert await server.app_of("default").tasks.get("two") is None


async def test_a_key_belongs_to_one_credential(quick_url):
    async with serving(quick_url) as server:
        for name in ("first", "second"):
            key = await make_key(server, "admin", name=name)
            made = await request(
                server, "POST", "/v1/tasks", key=key, body={"id": name}, headers={"idempotency-key": "a"}
            )
            assert made.status == 201


async def test_a_key_that_was_made_is_not_shown_again(quick_url):
    async with serving(quick_url) as server:
        key = await make_key(server, "admin")
        sent = {"key": key, "headers": {"idempotency-key": "a"}, "body": {"name": "ci", "scopes": ["viewer"]}}
        first = await request(server, "POST", "/v1/api-keys", **sent)
        again = await request(server, "POST", "/v1/api-keys", **sent)
        assert (first.status, again.status, again.code) == (201, 409, "answered_before")
        assert len(await server.desk.keys.all()) == 2


async def test_of_many_at_once_one_is_carried_out(quick_url):
    async with serving(quick_url) as server:
        gate, ran = asyncio.Event(), []

        async def carry_out() -> Answer:
            ran.append(1)
            await gate.wait()
            return Answer({"n": 1}, 201)

        answers = Answers(server.desk.vault)
        first = asyncio.ensure_future(answers.give("k", "same", carry_out))
        while not ran:
            await asyncio.wait([asyncio.ensure_future(server.desk.vault.secret())])
        with pytest.raises(HttpProblem) as running:
            await answers.give("k", "same", carry_out)
        assert (running.value.status, running.value.headers["Retry-After"]) == (409, "1")
        gate.set()
        assert (await first).status == 201
        assert (await answers.give("k", "same", carry_out)).value == {"n": 1}
        assert ran == [1]


async def test_a_request_that_failed_may_be_sent_again(quick_url):
    async with serving(quick_url) as server:
        ran = []

        async def carry_out() -> Answer:
            ran.append(1)
            if len(ran) == 1:
                raise HttpProblem(409, "conflict", "not now")
            return Answer("done")

        answers = Answers(server.desk.vault)
        with pytest.raises(HttpProblem):
            await answers.give("k", "same", carry_out)
        assert (await answers.give("k", "same", carry_out)).value == "done"


async def test_an_answer_is_forgotten_after_a_day_and_a_lost_request_after_a_minute(quick_url, clock):
    async with serving(quick_url) as server:
        answers = Answers(server.desk.vault)

        async def carry_out() -> Answer:
            return Answer("done")

        def mark() -> KeptAnswer:
            elsewhere = Process("elsewhere", "boot", "pid", 1, 1)
            return KeptAnswer("same", server.clock.now_ms(), elsewhere)

        assert not (await answers._begin("lost", mark())).is_cut_off  # its server dies here
        with pytest.raises(HttpProblem):
            await answers._begin("lost", mark())
        clock.advance(minutes=1)
        assert (await answers._begin("lost", mark())).is_cut_off
        await answers.give("k", "same", carry_out)
        clock.advance(hours=24)
        assert (await answers.give("k", "other", carry_out)).value == "done"


async def test_a_key_of_a_caller_who_may_choose_the_namespace_counts_in_each_of_them(quick_url):
    async with serving(quick_url) as server:
        for namespace in ("default", "other", "other"):
            headers = {"idempotency-key": "a", "perdure-namespace": namespace}
            made = await request(
                server, "POST", "/v1/tasks", body={"id": namespace}, headers=headers, peer_uid=os.geteuid()
            )
            assert made.status == 201, made.body
            assert await server.app_of(namespace).tasks.get(namespace) is not None
