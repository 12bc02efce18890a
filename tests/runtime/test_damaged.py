"""A damaged record of one unit is set aside and named; the keeper and all other units go on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.kit import Place, is_alive, until


def without(*names: str) -> Callable[[dict[str, Any]], Any]:
    return lambda told: {name: None if name in names else value for name, value in told.items()}


DAMAGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no json": lambda told: None,
    "a list": lambda told: [told],
    "no facts": without("facts"),
    "no recipe": without("recipe"),
    "no owner": without("owner"),
    "no pid": without("pid", "start"),
    "everybody's pid": lambda told: {**told, "pid": -1, "start": 0},
    "a limit that is none": lambda told: {**told, "limits": {"seconds": "soon"}},
    "a recipe of numbers": lambda told: {**told, "recipe": {**told["recipe"], "argv": [1, 2]}},
    "another uid": lambda told: {**told, "uid": ["x"]},
}
# Of these not even the name can be read.
NAMELESS = {"no json", "a list", "no owner"}


@pytest.mark.req("R83")
@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_record_of_a_unit_stops_no_other(place: Place, damage: str) -> None:
    async with place.runtime() as rt:
        bad = await rt.service("bad", ["sleep", "1000"])
        good = await rt.shell("good", env={"HOME": "/", "PS1": "$ "})
        await good.run("X=42")
        record = Path(place.home, "units", bad.uid, "unit.json")
        changed = DAMAGES[damage](json.loads(record.read_text()))
        record.write_text("{" if changed is None else json.dumps(changed))
        place.kill_keeper()
        assert (await good.run("echo $X")).output == "42\n"
        status = place.ask("status")
        assert [bad.uid in named for named in status["unreadable"]] == [True]
        told = {one["name"]: one for one in place.ask("units")["units"]}
        assert told["good"]["ended"] is None and record.exists()
        until(lambda: not is_alive(bad.pid), "what is called lost lives on")
        if damage not in NAMELESS:
            assert told["bad"]["ended"] == -1 and "damaged" in told["bad"]["facts"]["why"]
            again = await rt.service("bad", ["sleep", "1000"])
            assert again.level == "rebuilt" and "damaged" in again.verdict.reason and is_alive(again.pid)
