"""Children are tasks of their own: they outlive their parent's process, and are not run again."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from perdure import Perdure
from tests.coordination.team import noted, run_family
from tests.support.processes import Nursery
from tests.support.waiting import look_again

LONG = timedelta(seconds=120)


@pytest.mark.req("R141")
async def test_a_parent_killed_with_five_of_eight_children_done_goes_on_with_the_three(
    shared_url, tmp_path: Path, children: Nursery
):
    place, gate = tmp_path / "log", tmp_path / "gate"
    async with Perdure(shared_url) as app:
        family = children.start(run_family, shared_url, str(place), str(gate))
        family.heard()
        while {"all-started", *(f"child-{n}:began" for n in (5, 6, 7))} - set(noted(place)):
            await look_again()
        for n in range(5):
            await app.tasks.wait_for(f"child-{n}", timeout=LONG)
        family.kill()
        gate.touch()
        children.start(run_family, shared_url, str(place), str(gate)).heard()
        record = await app.tasks.wait_for("parent", timeout=LONG)
        assert record.result == [f"child-{n}" for n in range(8)]
        parent_uid = record.uid
        calls = [await app._store.query("get_call", uid=(await app.tasks.get(f"child-{n}")).uid) for n in range(8)]
        assert [call[0][5] for call in calls] == [parent_uid] * 8
    ran = noted(place)
    assert [ran.count(f"child-{n}") for n in range(5)] == [1] * 5
    assert [ran.count(f"child-{n}:ended") for n in (5, 6, 7)] == [1, 1, 1] and ran.count("all-started") == 1
