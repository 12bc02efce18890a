"""What a verb would do, as callers are shown it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, Struct, UnsetType

from perdure._model import ChildAtStake, DryRun, EffectAtStake
from perdure.server.requests import Answer, Caller


class EffectInSight(Struct, frozen=True, kw_only=True):
    """An effect that a verb is about."""

    name: str
    key: str
    path: str
    has_undo: bool
    call: str | UnsetType = UNSET  # with `data:read`


class Rehearsal(Struct, frozen=True, kw_only=True):
    """What would happen; nothing was changed."""

    undone: Sequence[EffectInSight]  # the newest first, as they would be undone
    kept: Sequence[EffectInSight]  # they happened, and would stay so
    uncertain: Sequence[EffectInSight]  # whether they happened would be settled first; a fork runs them on its own
    children: Sequence[ChildAtStake]  # open ones: they are not ended with it
    id: str | UnsetType = UNSET  # of the fork


def dry_run_for(caller: Caller, found: DryRun | None, id: str | None = None) -> Answer:
    assert found is not None

    def shown(effect: EffectAtStake) -> EffectInSight:
        return EffectInSight(
            name=effect.name,
            key=effect.key,
            path=effect.path,
            has_undo=effect.has_undo,
            call=effect.call if caller.reads_data else UNSET,
        )

    return Answer(
        Rehearsal(
            undone=[shown(one) for one in found.undone],
            kept=[shown(one) for one in found.kept],
            uncertain=[shown(one) for one in found.uncertain],
            children=found.children,
            id=UNSET if id is None else id,
        )
    )
