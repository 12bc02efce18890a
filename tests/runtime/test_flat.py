"""What is closed or consumed is not saved: a snapshot is as large as what lives."""

from __future__ import annotations

import pytest

from tests.runtime.kit import Place

OPENED = 300


@pytest.mark.req("R103")
async def test_hundreds_of_units_opened_and_ended_leave_no_trace_in_a_snapshot(place: Place) -> None:
    async with place.runtime() as rt:
        rt.context.env = {"PATH": "/usr/bin"}
        await rt.pipe("the one that stays")
        rt.context.partial_results["answer"] = "half a sen"
        first = await rt.save()
        for number in range(OPENED):
            unit = await rt.pipe(f"pipe {number}")
            await unit.end()
            rt.context.partial_results["answer"] = f"piece {number}"
        rt.context.partial_results["answer"] = "half a sen"
        last = await rt.save()
        sizes = {cut.id: cut.size async for cut in (await rt._task()).checkpoints()}
        assert abs(sizes[last.id] - sizes[first.id]) <= 64
        assert last.units == first.units
