"""The effect that a verb would have, as callers see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET, Struct, UnsetType
from msgspec.json import encode
from msgspec.structs import replace

from perdure._ground.encoding.json_values import plain
from perdure._model import ChildAtStake, DryRun, EffectAtStake, ForkPlan
from perdure.server.http import Answer, Caller

Json = Any
_MOST_STATE = 64_000  # bytes


class EffectInSight(Struct, frozen=True, kw_only=True):
    """An effect that a verb is about."""

    name: str
    key: str
    path: str
    has_undo: bool
    call: str | UnsetType = UNSET  # with `data:read`


class Rehearsal(Struct, frozen=True, kw_only=True):
    """The changes that would happen; nothing was changed."""

    undone: Sequence[EffectInSight]  # the newest first, as they would be undone
    kept: Sequence[EffectInSight]  # they happened, and would stay so
    uncertain: Sequence[EffectInSight]  # whether they happened would be settled first; a fork runs them on its own
    children: Sequence[ChildAtStake]  # open ones: they are not ended with it
    # Of a fork: its id, and what it would begin with. Its values are for callers with `data:read`.
    id: str | UnsetType = UNSET
    arguments: Mapping[str, Json] | UnsetType = UNSET
    takes: Mapping[str, Json] | UnsetType | None = UNSET  # JSON Schema of the arguments, as workers announce it
    state: Json | UnsetType = UNSET  # left out when it is too large to be edited as one text
    state_bytes: int | UnsetType = UNSET


def fork_plan_for(caller: Caller, found: ForkPlan, id: str) -> Answer:
    told = _rehearsal(caller, found)
    if not caller.reads_data:
        return Answer(replace(told, id=id))
    state = plain(found.state)
    size = len(encode(state))
    told = replace(told, id=id, arguments=found.arguments, takes=found.takes, state_bytes=size)
    return Answer(told if size > _MOST_STATE else replace(told, state=state), is_large=True)


def dry_run_for(caller: Caller, found: DryRun | None) -> Answer:
    assert found is not None
    return Answer(_rehearsal(caller, found))


def _rehearsal(caller: Caller, found: DryRun) -> Rehearsal:
    def shown(effect: EffectAtStake) -> EffectInSight:
        return EffectInSight(
            name=effect.name,
            key=effect.key,
            path=effect.path,
            has_undo=effect.has_undo,
            call=effect.call if caller.reads_data else UNSET,
        )

    return Rehearsal(
        undone=[shown(one) for one in found.undone],
        kept=[shown(one) for one in found.kept],
        uncertain=[shown(one) for one in found.uncertain],
        children=found.children,
    )
