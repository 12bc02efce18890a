"""Kill switches: stop one task, or all of them, whatever their code does."""

from __future__ import annotations

from perdure._durable import Switch
from perdure._ground.ids import check_id
from perdure.errors import InvalidInput
from perdure.server.http import Answer, Ask, listed
from perdure.server.nouns.references import glance_at, no_such, uid_in
from perdure.server.shapes.tasks import Listed, Strict
from perdure.server.table import Nothing, Route

_LONGEST_WHY = 1000


class Stop(Strict, frozen=True, kw_only=True):
    why: str = ""


async def listing(ask: Ask[Nothing, None]) -> Answer:
    return listed(ask, await ask.app.kill_switch.list())


async def stop_one(ask: Ask[Nothing, Stop]) -> Answer:
    return await _stop(ask, await _id(ask))


async def stop_all(ask: Ask[Nothing, Stop]) -> Answer:
    return await _stop(ask, None)


async def _stop(ask: Ask[Nothing, Stop], id: str | None) -> Answer:
    if len(ask.body.why) > _LONGEST_WHY:
        raise InvalidInput(f"why has {len(ask.body.why):,} characters; at most {_LONGEST_WHY:,} are allowed")
    await ask.app.kill_switch.on(id, why=ask.body.why)
    return Answer(next(one for one in await ask.app.kill_switch.list() if one.id == id))


async def lift_one(ask: Ask[Nothing, None]) -> Answer:
    await ask.app.kill_switch.off(await _id(ask))
    return Answer(None, 204)


async def lift_all(ask: Ask[Nothing, None]) -> Answer:
    await ask.app.kill_switch.off()
    return Answer(None, 204)


async def _id(ask: Ask[Nothing, Stop] | Ask[Nothing, None]) -> str:
    """The id that `{task}` names. The task need not exist, unless it is named by its uid."""
    given = ask.parts["task"]
    if uid_in(given):
        return (await glance_at(ask))[1].id
    try:
        return check_id(given)
    except InvalidInput:
        raise no_such("task") from None


ROUTES = (
    Route(
        method="GET",
        path="/v1/switches",
        handler=listing,
        does="The kill switches that are on.",
        scopes=("tasks:read",),
        answer=Listed[Switch],
    ),
    Route(
        method="PUT",
        path="/v1/switches/{task}",
        handler=stop_one,
        does="Stop a task: none of its steps, effects and model calls begins until the switch is lifted.",
        scopes=("tasks:control",),
        body=Stop,
        answer=Switch,
        once="may",
    ),
    Route(
        method="DELETE",
        path="/v1/switches/{task}",
        handler=lift_one,
        does="Lift the kill switch of a task.",
        scopes=("tasks:control",),
        status=204,
        once="may",
    ),
    Route(
        method="PUT",
        path="/v1/switch",
        handler=stop_all,
        does="Stop all tasks of the namespace.",
        scopes=("tasks:control",),
        body=Stop,
        answer=Switch,
        once="may",
    ),
    Route(
        method="DELETE",
        path="/v1/switch",
        handler=lift_all,
        does="Lift the kill switch for all tasks.",
        scopes=("tasks:control",),
        status=204,
        once="may",
    ),
)
