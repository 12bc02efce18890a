"""Remember in the store which keeper has which unit of a task.

A keeper knows its units by name, but it is one machine's. After a move, a new container or the loss of its folder, the
next keeper knows nothing of them. So the store has a note of each unit, and the notes belong to the task: a bundle
takes them along. By them a unit that is made elsewhere is not called new, nor one that was left behind the latest.

What must not be made twice, a request or a command by key, is noted before it is made. Another keeper does not make it;
the whole answer of a request is in its note once it was read. The keeper that was to make it and does not know it never
began: it writes its record down before it starts anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from perdure._model import Verdict
from perdure._runtime.keeper_client import Record
from perdure._runtime.units.shell_contents import Contents
from perdure._runtime.units.unit import Owner
from perdure._store import Store
from perdure._tasks import Kept, Shelf
from perdure.errors import Conflict

# Kinds of units that are made once per name, whatever becomes of them.
ONCE = frozenset({"request", "pipes"})
# A longer answer is only in its keeper's folder.
MOST_ANSWER = 1 << 20
_KIND = "unit"


class Note(Struct, frozen=True, kw_only=True):
    """Notes in the store: the keeper that has each unit, and the answer of each request that was read."""

    keeper: str  # which folder of a keeper
    host: str
    asked: str = ""  # digest of what a request asks for
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    contents: Contents | None = None  # of a shell that a bundle has brought, until it is made here


class Left(NamedTuple):
    """Where a unit was left behind, and which note said so."""

    host: str
    version: int

    def is_replaced_by(self, facts: Mapping[str, Any]) -> bool:
        """Whether the unit of this record was made in place of that very one."""
        return bool(facts.get("elsewhere") == self.host and facts.get("elsewhere_note") == self.version)


class MadeElsewhere(Exception):
    """Another keeper was to make the unit: its answer is in the note, or it is lost."""

    def __init__(self, made: Note) -> None:
        self.made = made

    def as_unit(self, kind: str, name: str, owner: Owner, recipe: Mapping[str, Any]) -> tuple[Record, Verdict]:
        if self.made.body is not None:
            verdict = Verdict("kept", "it was answered; the answer is kept in the store", same=("answer",))
        else:
            verdict = Verdict(
                "lost",
                f"it was made on {self.made.host} by a keeper that is not here, and is not made twice",
                do_not_assume=("that it was not done", "that it has ended"),
                options=("choose another name", "rt.release(name) lets another one be made under this name"),
            )
        record = Record(
            uid="",
            kind=kind,
            name=name,
            owner=owner.told(),
            recipe=dict(recipe),
            made_at=0.0,
            pid=0,
            epoch=0,
            ended=-1,
            ended_at=None,
            facts={"why": verdict.reason},
            about={},
            writer=0,
        )
        return record, verdict


class UnitNote:
    """The note of one unit."""

    def __init__(self, store: Store, owner: Owner, unit: str) -> None:
        self._shelf, self._host, self._key = _shelf(store, owner), store.presence.process.host, unit

    async def taken_over(self, here: str, *, is_new: bool) -> Left | None:
        """Who had it last, if that was another keeper. From now on the keeper of this identity has it."""
        while here:
            kept = await self._shelf.get(self._key)
            if kept is None:
                if not is_new or await self._shelf.add(self._key, Note(keeper=here, host=self._host)):
                    return None
            elif kept.value.keeper == here:
                return None
            elif await self._shelf.change(kept, Note(keeper=here, host=self._host)):
                return Left(kept.value.host, kept.version)
        return None

    async def former(self, here: str) -> Kept[Note] | None:
        """The note of another keeper, as long as none of this identity has taken it over."""
        kept = await self._shelf.get(self._key) if here else None
        return kept if kept is not None and kept.value.keeper != here else None

    async def begin(self, here: str, recipe: Mapping[str, Any]) -> None:
        """Write down that the keeper of this identity is about to make it.

        Raises:
            MadeElsewhere: another keeper was to make it.
            Conflict: that one was to make something else.
        """
        asked = _digest(recipe)
        while here:
            kept = await self._shelf.get(self._key)
            if kept is None and await self._shelf.add(self._key, Note(keeper=here, host=self._host, asked=asked)):
                return
            if kept is not None and kept.value.keeper == here:
                return
            if kept is not None and kept.value.asked != asked:
                raise Conflict(
                    f"{self._key!r} was made on {kept.value.host}, as another one",
                    kept="what is known of that one; nothing was made",
                    do="choose another name",
                )
            if kept is not None:
                raise MadeElsewhere(kept.value)

    async def keep(self, status: int, headers: tuple[tuple[str, str], ...], body: bytes) -> None:
        """Keep the whole answer. Nothing is written if it is there already, or too long."""
        kept = await self._shelf.get(self._key) if len(body) <= MOST_ANSWER else None
        if kept is not None and kept.value.body is None:
            answered = replace(kept.value, status=status, headers=headers, body=body)
            await self._shelf.change(kept, answered)  # who changed it meanwhile has kept the same answer


async def note_that_came(store: Store, owner: Owner, unit: str) -> Kept[Note] | None:
    """The note of a shell that a bundle has brought with its contents, and that was not made here yet."""
    kept = await _shelf(store, owner).get(unit)
    return kept if kept is not None and kept.value.contents is not None else None


def with_contents(store: Store, uid: str, value: bytes, contents: Contents) -> bytes:
    """The value of a note, as it stands in the store, with what is in its shell."""
    note = store.unseal(uid, _KIND, value, Note)
    return store.seal(uid, _KIND, replace(note, contents=contents), Note)


def is_note(kind: str) -> bool:
    """True if values of this kind are notes of units."""
    return kind == _KIND


async def forget_notes(store: Store, owner: Owner, name: str) -> bool:
    """Let units of this name be made anew; False if there is no note of one."""
    shelf = _shelf(store, owner)
    found = [kept for kept in await shelf.all() if name in _names(kept.key)]
    for kept in found:
        await shelf.drop(kept)
    return bool(found)


def _digest(recipe: Mapping[str, Any]) -> str:
    """Of what the name of a request stands for. A command's is its key alone: elsewhere its paths are others."""
    asked = [recipe.get(name) for name in ("method", "url", "digest")]
    return sha256(json.dumps(asked).encode()).hexdigest()


def command_of(shell: str, id: str) -> str:
    """The key of a command's note, in place of a unit's name. The note is deleted with its shell."""
    return f"shell {shell}\n{id}"


def _names(key: str) -> tuple[str, str]:
    name = key.partition(" ")[2].partition("\n")[0]
    return name, name.partition(":")[2]


def _shelf(store: Store, owner: Owner) -> Shelf[Note]:
    return Shelf(store, _KIND, Note, task=(owner.task, owner.uid))
