"""Streams: what changes is told, to those who may know it, and nothing is missed or told twice."""

from __future__ import annotations

import httpx2
import pytest

from perdure import Perdure, durable, step
from perdure.server.live import Pace
from tests.server.streaming import PATIENCE, Heard, a_server, hearing, until


@step
async def double(number: int) -> int:
    return 2 * number


@durable
async def doubles(upto: int) -> int:
    return sum([await double(number) for number in range(upto)])


async def test_a_stream_tells_of_tasks_that_change(url):
    with a_server(url) as (address, _), hearing(address, "/v1/stream?topics=tasks,counts") as heard:
        assert next(heard)[:1] == ("hello",)
        assert until(heard, "counts").data["counts"]["total"] == 0
        async with Perdure(url) as app:
            task = await app.tasks.create("report", state={})
            assert until(heard, "task").data["task"]["id"] == "report"
            assert until(heard, "counts").data["counts"]["total"] == 1
            await task.pause("Ship?", reason="human_approval")
            assert until(heard, "task").data["task"]["status"] == "paused"
            await task.cancel()
            await task.delete()
            assert until(heard, "gone").data["uid"] == task.uid


async def test_a_stream_tells_what_waits_for_people_and_what_was_decided(url):
    with a_server(url) as (address, _), hearing(address, "/v1/stream?topics=inbox") as heard:
        assert until(heard, "inbox").data["count"]["approval"] == 0
        async with Perdure(url) as app:
            task = await app.tasks.create("deploy", state={})
            await task.pause("Ship?", reason="human_approval")
            opened = until(heard, "inbox").data
            assert (opened["count"]["approval"], [one["text"] for one in opened["opened"]]) == (1, ["Ship?"])
            await app.inbox.approve(opened["opened"][0]["id"], by="ada")
            closed = until(heard, "inbox").data
            assert closed["count"]["approval"] == 0
            assert closed["closed"] == [{"id": opened["opened"][0]["id"], "by": "ada", "choice": "approve"}]


async def test_a_stream_tells_the_situation_of_a_task_with_the_ways_a_caller_has(url):
    with a_server(url) as (address, _):
        async with Perdure(url) as app:
            task = await app.tasks.create("deploy", state={})
            with hearing(address, "/v1/stream?topics=task:deploy,operate") as heard:
                first = until(heard, "situation").data
                assert first["uid"] == task.uid and any(way["allowed"] for way in first["situation"]["ways"])
                await task.pause("Ship?", reason="human_approval")
                tasks = (one.data["task"] for one in heard if one.event == "task")
                assert next(task for task in tasks if task["status"] == "paused")["situation"]["you"] == 1
                found = until(heard, "situation").data["situation"]
                assert (found["say"], found["you"]) == ("Ship?", 1)


async def test_a_stream_resumes_after_the_last_message(quick_url):
    with a_server(quick_url) as (address, _):
        async with Perdure(quick_url) as app:
            with hearing(address, "/v1/stream?topics=tasks") as heard:
                next(heard)
                await app.tasks.create("t1", state={})
                last = until(heard, "task")
            await app.tasks.create("t2", state={})
            with hearing(address, "/v1/stream?topics=tasks", after=last.id) as heard:
                assert next(heard).data["resumed"] is True
                assert next(heard).data["task"]["id"] == "t2"


@pytest.mark.parametrize("after", ["abc.1", "0.99999999999999999", "x", "../../"])
def test_an_id_of_another_feed_means_reading_the_page_again(quick_url, after):
    with a_server(quick_url) as (address, _), hearing(address, "/v1/stream?topics=tasks", after=after) as heard:
        assert next(heard).data["resumed"] is False
        assert next(heard)[:2] == ("reset", {"why": "restart"})


async def test_the_stream_of_a_task_has_each_event_and_each_call_once(url):
    with a_server(url) as (address, _):
        async with Perdure(url) as app:
            await app.run("sum", doubles, 5)
            events = await app.tasks.events("sum")
            numbers, positions, after = [], [], ""
            while not numbers or numbers[-1] < len(events):
                with hearing(address, "/v1/tasks/sum/stream", after=after) as heard:  # the line breaks after each one
                    assert next(heard).data["resumed"] is bool(after)
                    one = next(heard)
                    after = one.id
                    if one.event == "event":
                        numbers.append(one.data["number"])
                    else:
                        positions += [call["position"] for call in one.data["calls"]]
            assert numbers == [event.number for event in events]
            assert positions == list(range(1, 6))


async def test_the_stream_of_a_task_tells_progress_and_what_comes_later(url):
    with a_server(url) as (address, _):
        async with Perdure(url) as app:
            task = await app.tasks.create("copy", state={})
            with hearing(address, "/v1/tasks/copy/stream?after=now") as heard:
                next(heard)
                await task.mark_progress("copy", done=1, total=4)
                assert until(heard, "progress").data["progress"]["done"] == 1
                await task.complete({})
                assert until(heard, "event", kind="task.completed").id.startswith("e")


@pytest.mark.threat("T3")
async def test_a_stream_tells_a_caller_without_data_read_nothing_that_agents_wrote(url):
    secret = "MARKER"
    topics = "tasks,inbox,operate,task:job,journal:job,units:job"
    with a_server(url, frozenset({"tasks:read"})) as (address, _):
        async with Perdure(url) as app:
            task = await app.tasks.create("job", state={"a": secret})
            with (
                hearing(address, f"/v1/stream?topics={topics}") as all_of_it,
                hearing(address, "/v1/tasks/job/stream") as one,
            ):
                await task.mark_progress("copy", cursor=secret)
                await task.pause(secret, reason="human_approval", payload={"note": secret})
                told = [*through(all_of_it, "inbox"), *through(all_of_it, "inbox")]
                await task.resume()
                await task.fail({"type": "Oops", "message": secret})
                await task.delete()
                told += [*through(all_of_it, "gone"), *through(one, "gone")]
                assert {"inbox", "task", "event", "progress", "situation"} <= {message.event for message in told}
                assert secret not in str(told)


def test_a_stream_beats_and_says_goodbye_when_the_server_leaves(quick_url):
    with a_server(quick_url) as (address, server):
        server.live.pace = Pace(beat=0.05, check=60.0)
        with hearing(address, "/v1/stream?topics=tasks") as heard:
            assert until_comment(heard)
            stop(server)
            assert until(heard, "bye")
            assert list(heard) == []


async def test_a_stream_ends_when_its_caller_may_not_listen_any_more(quick_url):
    with a_server(quick_url) as (address, server):
        server.live.pace = Pace(beat=60.0, check=0.05)
        with hearing(address, "/v1/stream?topics=tasks") as heard:
            next(heard)
            server._identity.caller = None
            assert until(heard, "end")
            assert list(heard) == []


def test_a_credential_has_so_many_streams_and_gets_them_back(quick_url):
    with a_server(quick_url, streams_per_key=2) as (address, server), httpx2.Client(trust_env=False) as client:
        path = "/v1/stream?topics=tasks"
        with hearing(address, path) as one, hearing(address, path) as two:
            assert next(one).event == next(two).event == "hello"
            refused = client.get(f"{address}{path}")
            assert (refused.status_code, refused.json()["code"]) == (429, "too_many_streams")
        client.head(f"{address}{path}")
        with httpx2.Client(timeout=PATIENCE, trust_env=False) as patient:
            while patient.get(f"{address}/v1").status_code and server.live.rooms.taken:
                pass


@pytest.mark.parametrize("topics", ["", ",", "dance", "task:", "task", "task:nothing", "tasks," * 17])
def test_a_topic_that_is_not_there_is_refused(quick_url, topics):
    with a_server(quick_url) as (address, _), httpx2.Client(trust_env=False) as client:
        assert client.get(f"{address}/v1/stream?topics={topics}").status_code in (400, 404)


def through(heard, event: str) -> list[Heard]:
    """All that comes, up to the first event of this name."""
    found = [next(heard)]
    while found[-1].event != event:
        found.append(next(heard))
    return found


def until_comment(heard) -> bool:
    return any(one.event == "comment" for one in heard)


def stop(server) -> None:
    server.live._waker.get_loop().call_soon_threadsafe(server.stopping.set)
