"""A verb that is said twice is done once: a caller that lost the answer says it again with the same key.

The key is stored in the write itself, in the author of its event, which is in one transaction with the verb on every
engine and part of the hash chain. A repeated request looks for it there. A fingerprint of the request is stored beside
the key: the same key with another request is refused.

Exact also when two repeats race. A verb first reads what its write depends on (the state's checkpoint, the task's
version, the open question), then looks for the key, then writes on the condition that nothing of it has changed. A
repeat that was committed before the look is found; one that was committed after it fails the condition.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from perdure._ground.encoding import codec
from perdure._store import EventRow, Store
from perdure.errors import InvalidInput, KeyReused

_LONGEST = 200


class Once(NamedTuple):
    """One request that can be repeated."""

    key: str
    mark: str  # as written in the author: a hash of the key, and the fingerprint of the request

    async def was_done(self, store: Store, task_id: str, uid: str) -> EventRow | None:
        """The event of the write that was made for this key; None when none was.

        Raises:
            KeyReused: the key was used for something else.
        """
        text = f'"once":"{self.mark.partition(".")[0]}.'
        found = await store.row(EventRow, "find_once", uid=uid, text=text)
        if found is None:
            return None
        if f'"once":"{self.mark}"' not in found.author:
            raise KeyReused(task_id, self.key, found.kind)
        return found


def once_of(key: str | None, verb: str, *asked: object) -> Once | None:
    """The request that `key` names; None without a key.

    Raises:
        InvalidInput: the key is not 1 to 200 printable characters.
        NotStorable: what is asked cannot be stored.
    """
    if key is None:
        return None
    if type(key) is not str or not 0 < len(key) <= _LONGEST or not key.isprintable():
        raise InvalidInput(f"once is {key!r:.80}; it is a text of 1 to {_LONGEST} printable characters")
    print_of = hashlib.sha256(b"\0".join([verb.encode(), *map(codec.encode, asked)])).hexdigest()[:16]
    return Once(key, f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.{print_of}")


async def has_signed(store: Store, mark: str, owner: str) -> bool:
    """True if a request with this mark (`Author.mark`) has changed the task with this uid, or a value of this owner."""
    return bool(await store.query("find_signed", uid=owner, text=f'"mark":"{mark}"'))
