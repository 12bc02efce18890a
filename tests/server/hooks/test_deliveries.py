"""Every event that a webhook wants is sent to it: signed, at least once, with retries, until it is taken."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks.webhooks import Webhook as Reference
from standardwebhooks.webhooks import WebhookVerificationError

from perdure import Perdure
from perdure._ground.clock import MovableClock
from perdure._tasks import Webhooks, delay_after, patience_asked
from perdure._worker import WebhookDuty
from perdure.errors import AddressRefused, Conflict, InvalidInput, NotFound
from tests.server.hooks.kit import ADDRESS, headers_of, post
from tests.support.receivers import Receiver, answer
from tests.support.waiting import look_again

DOWN, GONE = answer(500), answer(410)


@pytest.fixture(autouse=True)
def now(clock: MovableClock) -> MovableClock:
    """Every test of this file moves its time."""
    clock.set_wall(datetime.now(UTC) - datetime(2030, 1, 1, tzinfo=UTC))  # the reference library reads the real one
    return clock


# ── what is sent ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R149")
async def test_every_event_is_sent_and_signed_as_the_reference_library_wants_it(url):
    async with post(url) as here:
        _, secret = await here.make()
        task = await here.app.tasks.open("order-7")
        await task.pause("may I pay?", reason="human_approval")
        await here.settle()
        events = await here.app.tasks.events("order-7")
        assert sorted(here.numbers()) == [event.number for event in events]
        assert {"task.created", "task.paused"} <= set(here.types())
        for got, body in zip(here.receiver.got, here.bodies(), strict=True):
            assert Reference(secret).verify(got.body, headers_of(got)) == body
            assert body["data"]["task"]["id"] == "order-7" and got.headers["content-type"] == "application/json"


async def test_a_message_with_a_wrong_clock_or_a_changed_body_is_refused_by_the_reference_library(quick_url, now):
    now.advance(minutes=-10)
    async with post(quick_url) as here:
        _, secret = await here.make()
        await here.app.tasks.open("a")
        await here.settle()
        got = here.receiver.got[0]
        with pytest.raises(WebhookVerificationError, match="too old"):
            Reference(secret).verify(got.body, headers_of(got))
        now.advance(minutes=10)
        await here.hooks.test((await here.hooks.list())[0].id)
        await here.settle()
        ping = here.receiver.got[-1]
        assert Reference(secret).verify(ping.body, headers_of(ping))["type"] == "webhook.ping"
        with pytest.raises(WebhookVerificationError):
            Reference(secret).verify(ping.body + b" ", headers_of(ping))


async def test_an_event_is_sent_once_however_often_it_is_looked_for(url, now):
    async with post(url) as here:
        await here.make(events=["task.created"])
        await here.app.tasks.open("a")
        await here.settle()
        for _ in range(3):
            now.advance(minutes=6)  # a sweep each time
            await here.settle()
        again = WebhookDuty(here.app.tasks, here.sender)  # as after a restart
        await here.duty.leave()
        await again.round()
        await again.leave()
        assert here.types() == ["task.created"]


async def test_what_happened_before_a_webhook_was_made_is_not_sent(url, now):
    async with post(url) as here:
        await here.app.tasks.open("before")
        now.advance(milliseconds=5)
        await here.make(events=["task.created"])
        await here.app.tasks.open("after")
        await here.settle()
        assert [body["data"]["task"]["id"] for body in here.bodies()] == ["after"]


async def test_events_that_happen_while_no_process_sends_are_sent_later(url, now):
    async with post(url) as here:
        await here.make(events=["task.created", "task.completed"])
        task = await here.app.tasks.open("a")
        await task.complete()
        now.advance(days=1)
        await here.settle()
        assert sorted(here.types()) == ["task.completed", "task.created"]


async def test_a_task_that_was_replaced_before_the_look_is_found_by_the_sweep(url, now):
    async with post(url) as here:
        await here.make(events=["task.completed"])
        await here.settle()
        await (await here.app.tasks.open("a")).complete()
        await (await here.app.tasks.open("a", again=True)).complete()
        await here.settle()
        now.advance(minutes=6)
        await here.settle()
        assert here.types() == ["task.completed", "task.completed"]


async def test_a_webhook_is_sent_only_what_it_asks_for(quick_url):
    async with post(quick_url) as here:
        await here.make(events=["task.paused", "task.failed"], reasons=["human_approval"])
        await here.make(events=["task.created"], tags={"team": "pay"}, agents=["ada"])
        for id, reason in (("a", "human_approval"), ("b", "checkpoint")):
            await (await here.app.tasks.open(id)).pause("wait", reason=reason)
        await (await here.app.tasks.open("c")).fail("no")
        await here.app.tasks.create("d", state={}, tags={"team": "pay", "x": "y"}, agent="ada")
        await here.app.tasks.create("e", state={}, tags={"team": "pay"}, agent="bob")
        await here.settle()
        told = sorted((body["type"], body["data"]["task"]["id"]) for body in here.bodies())
        assert told == [("task.created", "d"), ("task.failed", "c"), ("task.paused", "a")]


async def test_a_message_leaves_out_what_agents_wrote_unless_it_is_asked_for(quick_url):
    async with post(quick_url) as here:
        await here.make(events=["task.paused"])
        task = await here.app.tasks.open("a")
        await task.pause("MARKER the question", reason="human_approval")
        await here.settle()
        assert b"MARKER" not in here.receiver.got[0].body
        await here.make(events=["task.resumed", "task.paused"], data=True)
        await task.resume()
        await task.pause("MARKER again", reason="human_approval")
        await here.settle()
        told = [body for body in here.bodies() if "MARKER" in json.dumps(body)]
        assert [body["data"]["pause"]["text"] for body in told] == ["MARKER again"]
        assert told[0]["data"]["event"]["data"]["reason"] == "human_approval"


async def test_data_that_is_too_large_is_left_out_and_said_so(quick_url):
    async with post(quick_url) as here:
        await here.make(events=["task.failed"], data=True)
        await (await here.app.tasks.open("a")).fail("x" * 50_000)
        await here.settle()
        (got,) = here.receiver.got
        assert len(got.body) < 20 * 1024 and "data_left_out" in here.bodies()[0]["data"]["event"]


# ── receivers that fail ──────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R149")
async def test_a_receiver_that_is_down_three_times_gets_each_event_once_it_is_back_under_the_same_id(url, now):
    async with post(url, Receiver(answers=[DOWN, DOWN, DOWN])) as here:
        hook, _ = await here.make(events=["task.created"])
        await here.app.tasks.open("a")
        await here.settle()
        for minutes in (1, 7, 40):
            now.advance(minutes=minutes)
            await here.settle()
        assert len(here.receiver.got) == 4
        assert len({got.headers["webhook-id"] for got in here.receiver.got}) == 1
        (sent,) = await here.hooks.deliveries(hook)
        assert (sent.state, sent.tries, sent.status, sent.due_at) == ("delivered", 4, 204, None)
        now.advance(days=2)
        await here.settle()
        assert len(here.receiver.got) == 4


async def test_one_receiver_that_hangs_holds_up_no_other(quick_url):
    async def hang(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with Receiver(names=("slow.example.com",), answers=[hang] * 10) as slow, post(quick_url) as here:
        quick = here.sender

        async def dial(address, port, trust, name):
            place = slow if name == "slow.example.com" else here.receiver
            return await asyncio.open_connection("127.0.0.1", place.port, ssl=trust, server_hostname=name)

        quick._dial = dial
        await here.make(url="https://slow.example.com/", events=["task.created"])
        await here.make(events=["task.created"])
        for n in range(5):
            await here.app.tasks.open(f"t{n}")
        while len(here.receiver.got) < 5:
            await here.duty.round()
            await look_again()
        assert len(slow.got) <= 2


async def test_a_message_that_is_never_taken_is_given_up_after_the_last_try(quick_url, now):
    async with post(quick_url, Receiver(answers=[DOWN] * 20)) as here:
        hook, _ = await here.make(events=["task.created"])
        await here.app.tasks.open("a")
        for minutes in (1, 7, 40, 150, 370, 730, 1020, 2000):
            await here.settle()
            now.advance(minutes=minutes)
        (sent,) = await here.hooks.deliveries(hook)
        assert (sent.state, sent.tries, sent.trouble) == ("failed", 8, "status 500")
        assert len(here.receiver.got) == 8


@pytest.mark.parametrize("status", [429, 503])
async def test_a_receiver_that_asks_for_patience_is_heard(quick_url, now, status):
    async with post(quick_url, Receiver(answers=[answer(status, Retry_After="1800")])) as here:
        hook, _ = await here.make(events=["task.created"])
        await here.app.tasks.open("a")
        await here.settle()
        now.advance(minutes=29)
        await here.settle()
        assert len(here.receiver.got) == 1
        now.advance(minutes=2)
        await here.settle()
        assert (await here.hooks.deliveries(hook))[0].state == "delivered"


def test_the_schedule_of_retries_is_spread_and_ends():
    delays = [5, 300, 1800, 7200, 18_000, 36_000, 50_400]
    assert [delay_after(n + 1) for n in range(7)] == delays
    for dice, part in ((0.0, 0.8), (1.0, 1.2)):
        assert [delay_after(n + 1, dice=dice) for n in range(7)] == pytest.approx([part * one for one in delays])
    assert delay_after(8) is None
    assert delay_after(1, patience=90.0) == 90.0 and delay_after(1, patience=10**6) == 3600.0


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("120", 120.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 60.0),
        ("soon", 0.0),
        ("-5", 0.0),
        ("9" * 30, 3600.0),
        ("", 0.0),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(text, seconds):
    now = datetime(2015, 10, 21, 7, 27, tzinfo=UTC).timestamp()
    assert patience_asked(503, {"retry-after": text}, now) == seconds
    assert patience_asked(500, {"retry-after": text}, now) == 0.0


async def test_a_receiver_that_is_gone_disables_its_webhook_and_others_are_told(url):
    async with post(url, Receiver(answers=[GONE])) as here:
        gone, _ = await here.make(events=["task.created"])
        watcher, _ = await here.make(events=["webhook.disabled"])
        await here.app.tasks.open("a")
        await here.settle()
        await here.settle()
        found = await here.hooks.get(gone)
        assert not found.enabled and "410" in found.disabled_why
        assert here.types() == ["task.created", "webhook.disabled"]
        assert here.bodies()[1]["data"]["webhook"]["id"] == gone
        assert [one.state for one in await here.hooks.deliveries(watcher)] == ["delivered"]


async def test_three_days_without_success_disable_a_webhook_and_enabling_sends_what_waited(url, now):
    async with post(url, Receiver(answers=[DOWN] * 40)) as here:
        hook, _ = await here.make(events=["task.created"])
        for day in range(4):
            await here.app.tasks.open(f"t{day}")
            await here.settle()
            now.advance(hours=25)
        await here.settle()
        found = await here.hooks.get(hook)
        assert not found.enabled and "3 days" in found.disabled_why and found.failing_since is not None
        tried = len(here.receiver.got)
        await here.app.tasks.open("while disabled")
        await here.settle()
        assert len(here.receiver.got) == tried
        here.receiver.answers.clear()
        await here.hooks.enable(hook)
        await here.settle()
        found = await here.hooks.get(hook)
        assert found.enabled and found.failing_since is None
        late = [body["data"]["task"]["id"] for body in here.bodies()[tried:]]
        assert "while disabled" in late


async def test_a_success_ends_the_count_of_days(quick_url, now):
    async with post(quick_url, Receiver(answers=[DOWN])) as here:
        hook, _ = await here.make(events=["task.created"])
        await here.app.tasks.open("a")
        await here.settle()
        assert (await here.hooks.get(hook)).failing_since is not None
        now.advance(minutes=1)
        await here.settle()
        assert (await here.hooks.get(hook)).failing_since is None


# ── secrets ──────────────────────────────────────────────────────────────────────────────────────


async def test_while_a_secret_is_rotated_messages_carry_both_signatures(quick_url, now):
    async with post(quick_url) as here:
        hook, old = await here.make()
        made = await here.hooks.rotate(hook)
        await here.hooks.test(hook)
        await here.settle()
        got = here.receiver.got[-1]
        for secret in (old, made.secret):
            Reference(secret).verify(got.body, headers_of(got))
        now.advance(hours=25)
        await here.hooks.test(hook)
        await here.settle()
        assert len(here.receiver.got[-1].headers["webhook-signature"].split()) == 1


@pytest.mark.req("R143")
async def test_a_secret_is_shown_once_and_sealed_where_the_store_has_a_key(tmp_path):
    key = "k1:" + "A" * 43 + "="
    async with post(str(tmp_path / "store.db"), key=key) as here:
        hook, secret = await here.make()
        _, address = await here.hooks.rotate(hook), ADDRESS
        await here.hooks.test(hook)
        await here.settle()
        assert secret not in repr(await here.hooks.list()) and secret not in repr(await here.hooks.deliveries(hook))
        assert secret not in repr(await here.hooks.rotate(hook))
        got = here.receiver.got[-1]
        assert secret not in str(got.headers) and secret.encode() not in got.body
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert secret.encode() not in written and address.encode() not in written


async def test_an_answer_that_repeats_a_secret_is_kept_without_it(quick_url):
    async with post(quick_url) as here:
        hook, secret = await here.make()
        here.receiver.answers.append(answer(500, f"{secret} ghp_{'a' * 36}".encode()))
        await here.hooks.test(hook)
        await here.settle()
        (sent,) = await here.hooks.deliveries(hook)
        assert secret not in sent.answer and "ghp_" not in sent.answer


# ── operating ────────────────────────────────────────────────────────────────────────────────────


async def test_a_replay_sends_the_same_body_under_a_new_id(url):
    async with post(url) as here:
        hook, _ = await here.make(events=["task.created"])
        await here.app.tasks.open("a")
        await here.settle()
        (first,) = await here.hooks.deliveries(hook)
        again = await here.hooks.replay(hook, first.id)
        await here.settle()
        one, other = here.receiver.got
        assert one.body == other.body and again.id == other.headers["webhook-id"] != first.id


async def test_old_messages_are_forgotten_after_seven_days(url, now):
    async with post(url) as here:
        hook, _ = await here.make(events=["task.created"])
        await here.app.tasks.open("a")
        await here.settle()
        now.advance(days=6)
        await here.settle()
        assert len(await here.hooks.deliveries(hook)) == 1
        now.advance(days=2)
        await here.settle()
        assert await here.hooks.deliveries(hook) == []


async def test_a_disabled_webhook_sends_no_ping(quick_url):
    async with post(quick_url) as here:
        hook, _ = await here.make()
        await here.hooks.disable(hook)
        with pytest.raises(Conflict, match="disabled"):
            await here.hooks.test(hook)


async def test_a_webhook_is_checked_before_it_is_kept(quick_url):
    async with Perdure(quick_url) as app:
        for address in ("http://hooks.example.com/", "https://127.0.0.1/", "https://localhost/"):
            with pytest.raises(AddressRefused):
                await app.webhooks.make(address)
        with pytest.raises(InvalidInput, match=r"unknown event 'task\.pause'") as refused:
            await app.webhooks.make(ADDRESS, events=["task.pause"])
        assert "task.paused" in refused.value.do
        with pytest.raises(InvalidInput, match="reason"):
            await app.webhooks.make(ADDRESS, reasons=["boredom"])
        assert await app.webhooks.list() == []
        with pytest.raises(NotFound):
            await app.webhooks.get("hook_none")


async def test_a_change_keeps_what_it_does_not_name(quick_url):
    async with post(quick_url) as here:
        hook, _ = await here.make(events=["task.failed"], tags={"a": "b"}, description="first")
        changed = await here.hooks.change(hook, description="second", version=1)
        assert (changed.description, changed.events, changed.tags) == ("second", ("task.failed",), {"a": "b"})
        with pytest.raises(Conflict, match="version"):
            await here.hooks.change(hook, description="third", version=1)
        await here.hooks.remove(hook)
        assert await here.hooks.list() == []


async def test_of_two_processes_one_holds_the_post_and_the_other_takes_it_when_the_first_leaves(shared_url, now):
    async with post(shared_url) as here:
        await here.make(events=["task.created"])
        await here.settle()
        other = WebhookDuty(here.app.tasks, here.sender)
        await other.round()
        await here.app.tasks.open("a")
        await other.round()
        assert here.receiver.got == []  # the first of this process has the duty
        await here.duty.leave()
        await other.round()
        await asyncio.gather(*other._sending._under_way.values())
        await other.leave()
        assert here.types() == ["task.created"]


async def test_messages_survive_a_change_of_the_sealing_key(tmp_path):
    from perdure._tasks import rotate, store_of

    old, new = "k1:" + "A" * 43 + "=", "k2:" + "B" * 43 + "="
    place = str(tmp_path / "store.db")
    async with post(place, Receiver(answers=[DOWN]), key=old) as here:
        hook, secret = await here.make()
        await here.hooks.test(hook)
        await here.settle()
    async with Perdure(place, key=f"{new},{old}") as app:
        assert (await rotate(store_of(app.tasks))).is_done
    async with post(place, key=new) as here:
        (sent,) = await Webhooks(here.app.tasks).deliveries(hook)
        assert sent.trouble == "status 500" and "webhook.ping" in sent.body
        await here.hooks.replay(hook, sent.id)
        await here.settle()
        got = here.receiver.got[-1]
        assert Reference(secret).verify(got.body, headers_of(got))


async def test_an_interval_between_two_looks_loses_nothing(url, now):
    async with post(url) as here:
        await here.make(events=["task.created"])
        for n in range(30):
            await here.app.tasks.open(f"t{n}")
            if n % 7 == 0:
                await here.settle()
            now.advance(timedelta(milliseconds=300))
        await here.settle()
        assert sorted(body["data"]["task"]["id"] for body in here.bodies()) == sorted(f"t{n}" for n in range(30))
