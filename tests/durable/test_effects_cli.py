"""What a person types about effects: look at what is uncertain, answer, export the ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perdure import Perdure, pause, signals
from perdure._durable import durable, effect
from perdure.cli import main
from tests.durable.effects_kit import status_of, until_paused


@effect
async def charge(order: str, cents: int) -> dict[str, str]:
    raise ConnectionError("gone")


@durable
async def checkout(order: str) -> dict[str, str]:
    return await charge(order, 500)


@durable
async def asking() -> int:
    return await pause.input("how many?", int)


@durable
async def listening() -> str:
    return await signals.next("go on", str)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/p.db"


def run(capsys: Any, url: str, *words: str) -> tuple[int, Any]:
    code = main([*words, "--store", url, "--json"])
    said = capsys.readouterr()
    return code, json.loads(said.out or said.err)


@pytest.mark.req("R64")
async def test_an_uncertain_effect_is_found_and_settled_from_the_shell(url: str, capsys: Any) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "order-42", checkout, "o-1")
    code, found = run(capsys, url, "effects")
    (waiting,) = found["items"]
    assert (code, waiting["task_id"], waiting["call"]) == (0, "order-42", "charge('o-1', 500)")
    assert (waiting["why"], waiting["is_waited_for"]) == ("ConnectionError: gone", True)

    _, found = run(capsys, url, "where", "order-42")
    assert found["waits_for"] == ["outcome unknown: charge('o-1', 500) (ConnectionError: gone)"]
    assert found["next"] == "an answer: perdure answer order-42 done|retry|fail"

    code, found = run(capsys, url, "answer", "order-42", "perhaps")
    assert code == 2 and "'perhaps' is not an answer" in json.dumps(found)
    code, found = run(capsys, url, "answer", "order-42", "retry", "--value", "1")
    assert code == 2
    code, found = run(capsys, url, "answer", "order-42", "done", "--key", waiting["key"], "--value", '{"id": "ch_1"}')
    assert (code, found["status"]) == (0, "running")
    code, found = run(capsys, url, "answer", "order-42", "done")
    assert (code, found["error"]["type"]) == (4, "Conflict"), "somebody was first"

    async with Perdure(url) as app:
        assert await app.run("order-42", checkout, "o-1") == {"id": "ch_1"}
    code, found = run(capsys, url, "effects", "order-42")
    (record,) = found["items"]
    assert (record["state"], record["settled"], record["key"]) == ("done", "person", waiting["key"])
    assert main(["effects", "order-42", "--store", url]) == 0
    assert "charge('o-1', 500)" in capsys.readouterr().out
    assert main(["effects", "--store", url]) == 0
    assert "no uncertain effects" in capsys.readouterr().out
    assert run(capsys, url, "effects", "nobody")[0] == 3


async def test_a_question_of_the_function_is_answered_with_a_value(url: str, capsys: Any) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "t", asking)
    assert run(capsys, url, "answer", "t", "7", "--by", "ada")[0] == 0
    async with Perdure(url) as app:
        assert await app.run("t", asking) == 7
        assert await status_of(app, "t") == "completed"


async def test_where_names_the_signal_that_a_task_waits_for(url: str, capsys: Any) -> None:
    async with Perdure(url) as app:
        await until_paused(app, "t", listening)
    assert run(capsys, url, "where", "t")[1]["next"] == "a signal of type str: perdure signal t 'go on' VALUE"
