"""A damaged record of one unit is set aside and named; the keeper and all other units go on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.kit import Place


def without(*names: str) -> Callable[[dict[str, Any]], Any]:
    return lambda told: {name: None if name in names else value for name, value in told.items()}


DAMAGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no json": lambda told: None,
    "a list": lambda told: [told],
    "no facts": without("facts"),
    "no recipe": without("recipe"),
    "no owner": without("owner"),
    "no pid": without("pid", "start"),
    "an unknown kind of uid": lambda told: {**told, "uid": ["x"]},
}


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
        assert [told["name"] for told in place.ask("units")["units"]] == ["good"]
        assert record.exists()
