"""What a person sees when something fails: where it was raised, in which calls, and nothing opaque or secret."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, Retry, durable, effect, pause, runtime, step
from perdure._durable import where
from perdure._durable.control.control_watch import note_calls, watch_of
from perdure._durable.journal.journal_reader import failure_in
from perdure._durable.values.values import decode_error, encode_error
from perdure._ground.encoding import codec
from perdure._ground.secrets import known_secrets
from perdure._ground.traceback_text import MOST_BYTES, MOST_FRAMES, place_in, trace_of
from perdure._model import Config, Entry
from perdure.cli import main
from perdure.errors import EffectUncertain
from tests.durable.effects_kit import wait_until

QUICK = Retry(2, wait=timedelta(milliseconds=1))


def price_of(text: str) -> float:
    return float(text)  # where it goes wrong


@step
async def price(text: str) -> float:
    return price_of(text)


@durable(name="shown: order")
async def order(text: str) -> float:
    return await price(text)


def told(capsys: Any, *args: str) -> str:
    assert main(list(args)) == 0
    return str(capsys.readouterr().out)


def told_json(capsys: Any, *args: str) -> Any:
    return json.loads(told(capsys, *args, "--json"))


async def until_paused(app: Perdure) -> None:
    async def is_paused() -> bool:
        return bool((await app.tasks.list(status="paused")).items)

    await wait_until(is_paused)


# ── a failed task ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("R116")
async def test_a_failed_task_shows_the_line_it_failed_at(tmp_path: Path, capsys: Any) -> None:
    url = f"sqlite://{tmp_path}/p.db"
    async with Perdure(url) as app:
        with pytest.raises(ValueError, match="could not convert"):
            await app.run("o1", order, "n/a")
        record = await app.tasks.get("o1")
    assert record is not None and sorted(record.error) == ["message", "traceback", "type"]
    for verb in ("show", "where"):
        shown = told(capsys, verb, "o1", "--store", url)
        assert re.search(r"at test_failures_shown.py:\d+ in price_of: return float\(text\)", shown)
        assert "in order\n" in shown and "in price\n" in shown  # one traceback, through the step
        assert f"{Path('src') / 'perdure'}" not in shown, "frames of perdure tell a person nothing"
    assert told_json(capsys, "show", "o1", "--store", url)["error"] == record.error
    assert told_json(capsys, "where", "o1", "--store", url)["traceback"] == record.error["traceback"]


async def test_a_replay_tells_the_same_place_as_the_first_run(quick_url: str) -> None:
    @durable(name="shown: two tries")
    async def twice() -> None:
        with pytest.raises(ValueError, match="could not") as first:
            await price("n/a")
        await pause.input("go on?", bool)
        raise RuntimeError("no price") from first.value

    async with Perdure(quick_url) as app:
        handle = await app.start("t", twice)
        async with app.worker():
            await until_paused(app)
            before = (await where(app.tasks, "t")).returned
            await (await app.tasks.open("t")).answer(True)
            with pytest.raises(RuntimeError, match="no price"):
                await handle.result()
        record = await app.tasks.get("t")
    assert "raised ValueError: could not convert" in before[0] and "in price_of: return float(text)" in before[0]
    assert record is not None and "in price_of\n" in record.error["traceback"], "the second attempt replayed the step"
    assert place_in(record.error["traceback"]).endswith('raise RuntimeError("no price") from first.value')


async def test_a_function_that_is_tried_again_keeps_where_each_try_failed(quick_url: str) -> None:
    @durable(name="shown: tried again")
    async def fails() -> None:
        price_of("n/a")

    async with Perdure(quick_url) as app:
        handle = await app.start("t", fails.options(config=Config(on_failure="pause")))
        async with app.worker():
            await until_paused(app)
        found = await where(app.tasks, "t")
        events = await app.tasks.events("t")
    assert handle.id == "t" and found.error.startswith("ValueError: could not convert")
    assert "in price_of: return float(text)" in place_in(found.traceback)
    assert events[-1].kind == "paused" and events[-1].data["traceback"] == found.traceback


async def test_a_worker_in_a_program_logs_where_a_task_failed(quick_url: str, caplog: Any) -> None:
    with caplog.at_level(logging.ERROR, "perdure.worker"):
        async with Perdure(quick_url) as app:
            handle = await app.start("o1", order, "n/a")
            async with app.worker():
                with pytest.raises(ValueError, match="could not convert"):
                    await handle.result()
                await wait_until(lambda: bool(caplog.records))
    assert "task o1 failed: ValueError: could not convert" in caplog.text
    assert "in price_of: return float(text)" in caplog.text


async def test_a_plain_attempt_that_fails_keeps_where(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        task = await app.tasks.create("plain", state={}, config=Config(on_failure="fail"))
        with pytest.raises(ValueError, match="could not convert"):
            async with task.attempt():
                price_of("n/a")
        record = await app.tasks.get("plain")
    assert record is not None and "in price_of: return float(text)" in record.error["traceback"]


# ── effects and retries ──────────────────────────────────────────────────────────────────────────


@effect(keyed=True, retry=QUICK)
async def keyed_charge(order: str, api_token: str) -> str:
    raise ConnectionError("reset\nby peer")


@effect(on_uncertain="fail")
async def lost_charge(order: str) -> str:
    raise ConnectionError("reset by peer")


@effect(failed_on=[ValueError])
async def refused_charge(order: str) -> str:
    price_of("n/a")
    return order


@step(retry=QUICK)
async def shaky(order: str) -> None:
    price_of("n/a")


@durable(name="shown: charges")
async def charges() -> None:
    for call in (refused_charge, lost_charge, shaky):
        with pytest.raises((ValueError, EffectUncertain)):
            await call("o1")
    await keyed_charge("o1", "hunter-two")


async def test_failed_and_uncertain_effects_and_retries_show_where_and_are_logged(
    tmp_path: Path, capsys: Any, caplog: Any
) -> None:
    url = f"sqlite://{tmp_path}/p.db"
    with caplog.at_level(logging.WARNING, "perdure"):
        async with Perdure(url) as app:
            await app.start("c", charges)
            async with app.worker():
                await until_paused(app)
            ledger = {one.name: one for one in await app.effects.of("c")}
            (uncertain,) = [one for one in await app.effects.list() if one.is_waited_for]
            found = await where(app.tasks, "c")
    assert ledger["refused_charge"].state == "failed"
    assert "in price_of: return float(text)" in ledger["refused_charge"].traceback
    assert ledger["lost_charge"].state == "uncertain"
    assert "in lost_charge: raise Conn" in ledger["lost_charge"].traceback
    assert "in keyed_charge: raise Conn" in uncertain.traceback and "\n" not in uncertain.why
    (frame,) = [one for one in found.frames if one.state == "uncertain" and one.name == "keyed_charge"]
    assert frame.traceback == uncertain.traceback and frame.call == "keyed_charge('o1', [secret])"
    assert "shaky#1 raised ValueError" in "\n".join(found.returned)
    log = caplog.text
    assert "keyed_charge('o1', [secret]) failed, try 1 of 2: ConnectionError: reset; by peer" in log
    assert "shaky('o1') failed, try 1 of 2: ValueError" in log
    assert "whether keyed_charge('o1', [secret]) happened is not known" in log
    journal = {one["path"]: one for one in told_json(capsys, "journal", "c", "--store", url)["items"]}
    assert "in price_of" in journal["shaky#1"]["error"]["traceback"]
    for verb in ("show", "where", "journal", "effects"):
        shown = told(capsys, verb, "c", "--store", url)
        assert "in keyed_charge: raise Conn" in shown or verb == "journal"
        assert "hunter-two" not in shown.replace('await keyed_charge("o1", "hunter-two")', "")


async def test_a_try_of_a_keyed_effect_says_in_its_intent_how_the_one_before_failed(quick_url: str) -> None:
    """Also when the process dies before the second try has ended."""

    tries: list[int] = []

    @effect(keyed=True, retry=QUICK)
    async def sent() -> None:
        tries.append(len(tries))
        if len(tries) == 1:
            price_of("n/a")
        await asyncio.Event().wait()

    @durable(name="shown: sent")
    async def sends() -> None:
        await sent()

    async with Perdure(quick_url) as app:
        await app.start("s", sends)
        async with app.worker():
            await wait_until(lambda: len(tries) == 2)
            frames = (await where(app.tasks, "s")).frames
    assert frames[0].state == "under way" and frames[0].error.startswith("ValueError: could not")
    assert "in price_of" in place_in(frames[0].traceback)


async def test_an_attempt_that_diverges_shows_the_call_that_did(quick_url: str) -> None:
    argument = [1]

    @step
    async def first(number: int) -> int:
        return number

    @durable(name="shown: diverging")
    async def diverging() -> None:
        await first(argument[0])
        await pause.input("go on?", bool)

    async with Perdure(quick_url) as app:
        await app.start("d", diverging)
        async with app.worker():
            await until_paused(app)
            argument[0] = 2
            await (await app.tasks.open("d")).answer(True)

            async def has_diverged() -> bool:
                record = await app.tasks.get("d")
                return record is not None and record.pause is not None and "diverged" in record.pause.details

            await wait_until(has_diverged)
            found = await where(app.tasks, "d")
    assert "in diverging: await first(argument[0])" in place_in(found.traceback)


# ── nothing opaque ───────────────────────────────────────────────────────────────────────────────


@step
async def fetch(name: str) -> bytes:
    return bytes(range(64))


@durable(name="shown: opaque")
async def opaque(data: bytes, note: str) -> None:
    await fetch("a\nb")
    await refused_charge(note)


async def test_no_view_shows_bytes_blobs_or_escaped_line_breaks(tmp_path: Path, capsys: Any) -> None:
    url = f"sqlite://{tmp_path}/p.db"
    async with Perdure(url) as app:
        with pytest.raises(ValueError, match="could not"):
            await app.run("t", opaque, b"\x00\xff" * 40, "one\ntwo")
    for verb in ("show", "where", "journal", "effects"):
        shown = told(capsys, verb, "t", "--store", url)
        assert "\\n" not in shown and "b'\\x" not in shown and '"raised"' not in shown, shown
        data = told_json(capsys, verb, "t", "--store", url)
        assert not [text for text in texts(data) if is_opaque(text)], data
    assert "one⏎two" in told(capsys, "where", "t", "--store", url)


async def test_texts_of_several_lines_are_shown_as_such(tmp_path: Path, capsys: Any) -> None:
    url = f"sqlite://{tmp_path}/p.db"
    async with Perdure(url) as app:
        task = await app.tasks.open("t", state={"note": "one\ntwo"})
        await task.pause("three\nfour", reason="human_input", question="five\nsix")
        await (await app.tasks.open("done", state={})).complete("seven\neight")
    for words in (["show", "t"], ["show", "t", "--full"], ["where", "t"], ["tasks"], ["events", "t"], ["show", "done"]):
        assert "\\n" not in told(capsys, *words, "--store", url)
    shown = told(capsys, "show", "done", "--store", url)
    assert re.search(r"result +seven\n +eight\n", shown)


def texts(value: Any) -> Sequence[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in texts(item)]
    return [value] if isinstance(value, str) else []


def is_opaque(text: str) -> bool:
    """Base64 of something long, a repr of bytes, or arguments as hex."""
    is_base64 = re.fullmatch(r"[A-Za-z0-9+/]{40,}={0,2}", text) is not None and not text.isalnum()
    return is_base64 or "b'\\x" in text or b"one\ntwo".hex() in text


# ── the text itself ──────────────────────────────────────────────────────────────────────────────


def deep(depth: int) -> None:
    if depth:
        deep(depth - 1)
    raise KeyError("é" * 9000)


def test_a_traceback_is_bounded_in_frames_and_bytes() -> None:
    with pytest.raises(KeyError) as raised:
        deep(300)
    text = trace_of(raised.value)
    assert text.count("  File ") <= MOST_FRAMES and len(text.encode()) <= MOST_BYTES
    assert "frames left out]" in text and 'in deep\n    raise KeyError("é" * 9000)' in text


def test_a_long_chain_keeps_its_first_lines_and_its_last() -> None:
    def link(length: int) -> None:
        if length:
            try:
                link(length - 1)
            except ValueError as error:
                raise ValueError(f"{length}: {'ü' * 900}") from error
        raise ValueError(f"{length}: {'ü' * 900}")

    with pytest.raises(ValueError, match="ü") as raised:
        link(7)
    text = trace_of(raised.value)
    assert len(text.encode()) <= MOST_BYTES and "lines left out]" in text
    assert text.startswith("at test_failures_shown.py:") and "\nValueError: 7: ü" in text


def test_the_users_frames_are_kept_before_those_of_libraries() -> None:
    def called_back(depth: int) -> Any:
        if depth == 0:
            raise KeyError("deep in a library")
        return json.loads('{"a": 1}', object_hook=lambda _: called_back(depth - 1))

    with pytest.raises(KeyError) as raised:
        called_back(9)
    text = trace_of(raised.value)
    assert text.count("in called_back\n") == 10 and text.count("  File ") <= MOST_FRAMES


def test_a_traceback_holds_no_secret_by_form_or_by_value() -> None:
    known_secrets.know("correct horse", "secret://env/HORSE")
    try:
        with pytest.raises(ValueError, match="horse") as raised:
            raise ValueError("password=hunter2222 and correct horse")
    finally:
        text = trace_of(raised.value)
        known_secrets.forget_all()
    assert "ValueError: password=[secret] and secret://env/HORSE" in text and "hunter2222" not in text


def test_a_traceback_cannot_act_on_a_terminal() -> None:
    with pytest.raises(ValueError, match="gone") as raised:
        raise ValueError("\x1b]0;gone\x07\udc80 and \u202eback")
    text = trace_of(raised.value)
    assert "ValueError: \\x1b]0;gone\\x07\\udc80 and \\u202eback" in text and text.replace("\n", "").isprintable()


def test_errors_that_were_recorded_without_a_traceback_are_read() -> None:
    old = codec.encode({"type": "ValueError", "message": "old", "args": ["old"]})
    assert str(decode_error(old, [])) == "old"
    assert failure_in(Entry("result", "step", "|s#1", b"", error=old)).traceback == ""
    tried = Entry("intent", "try", "|s#1", b"", note={"tries": 1, "until": 5, "error": "ValueError"})
    assert str(failure_in(tried)) == "ValueError"


def test_a_traceback_is_kept_once_with_an_exception_of_several() -> None:
    with pytest.raises(ExceptionGroup) as raised:
        raise ExceptionGroup("both", [ValueError("one"), KeyError("two")])
    found = codec.peek(encode_error(raised.value, []))
    assert "  | ValueError: one" in found["traceback"]
    assert all("traceback" not in codec.peek(member) for member in found["group"][1])


# ── the call stack ───────────────────────────────────────────────────────────────────────────────


async def prepare(items: list[int], password: str) -> None:
    await ask_about(items)


async def ask_about(items: list[int]) -> None:
    await pause.approval(f"Charge {len(items)} items?")


@durable(name="shown: nested")
async def nested(order: str) -> None:
    secret = "hunter2222"
    await prepare([1, 2], secret)


@pytest.mark.req("R116")
async def test_where_shows_the_plain_functions_between_the_task_and_what_it_waits_for(
    tmp_path: Path, capsys: Any
) -> None:
    url = f"sqlite://{tmp_path}/p.db"
    async with Perdure(url) as app:
        await app.start("n", nested, "o1")
        async with app.worker():
            await until_paused(app)
        (frame,) = (await where(app.tasks, "n")).frames
    outer, middle, inner = frame.stack
    assert outer.startswith("nested(order='o1') at test_failures_shown.py:")
    assert middle.startswith("prepare(items=[1, 2], password=[secret]) at ")
    assert inner.startswith("ask_about(items=[1, 2]) at ") and 'await pause.approval(f"Charge' in inner
    shown = told(capsys, "where", "n", "--store", url)
    assert shown.index("nested(order") < shown.index("  prepare(items") < shown.index("    ask_about(items")
    assert "hunter2222" not in shown


@step
async def slow(number: int) -> None:
    await inside(number)


async def inside(number: int) -> None:
    await asyncio.Event().wait()


async def branch(number: int) -> None:
    await price("1")
    await slow(number)


@durable(name="shown: branches")
async def branches() -> None:
    await asyncio.gather(branch(1), branch(2))


async def test_a_long_step_shows_the_functions_around_it_and_what_its_branch_returned(quick_url: str) -> None:
    async with Perdure(quick_url) as app:
        await app.start("b", branches)
        async with app.worker():

            async def is_noted() -> bool:
                for attempt in list(watch_of(app._store, asyncio.get_running_loop()).attempts.values()):
                    note_calls(attempt)
                return len((await where(app.tasks, "b")).frames) == 2

            await wait_until(is_noted)
            found = (await where(app.tasks, "b")).frames
    first = found[0]
    names = [line.partition("(")[0] for line in first.stack]
    assert names == ["branch", "slow", "inside"] and first.call == "slow(1)"
    assert list(first.returned) == [f"{first.scope}|price#1 -> 1.0"]


@durable(name="shown: saving")
async def saving(order: str) -> list[Any]:
    rt = await runtime.open()

    async def save_it(label: str, token: str) -> list[Any]:
        beside = asyncio.create_task(branch(7))
        await asyncio.sleep(0)
        cut = await rt.save(label=label)
        beside.cancel()
        return list(cut.call_stack)

    return await save_it("now", "hunter2222")


async def test_a_cut_holds_the_functions_that_it_was_saved_in(tmp_path: Path) -> None:
    async with Perdure(f"sqlite://{tmp_path}/p.db") as app:
        base, *frames = await app.run("s", saving, "o1")
    assert base["function"] == "shown: saving" and base["arguments"] == {"order": "o1"}
    assert [line.partition(" at ")[0] for line in base["stack"]] == [
        "saving(order='o1')",
        "save_it(label='now', token=[secret])",
    ]
    assert any("branch(number=7)" in line for frame in frames for line in frame["stack"])
