"""A verb that is said twice is done once: a caller that lost the answer says it again with the same key.

The key is kept in the write itself, in the author of its event, which is one transaction with the verb on every
engine and part of the hash chain. A repeat looks for it there. Beside the key stands a fingerprint of what was asked:
the same key for something else is refused.

Exact also when two repeats race. A verb first reads what its write depends on (the state's checkpoint, the task's
version, the open question), then looks for the key, then writes on the condition that nothing of it has changed. A
repeat that was committed before the look is found; one that was committed after it fails the condition.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from perdure._ground import codec
from perdure._store import EventRow, Store
from perdure.errors import InvalidInput, KeyReused

_LONGEST = 200


class Once(NamedTuple):
    """One request that may be repeated."""

    key: str
    mark: str  # as it stands in the author: a hash of the key, and the fingerprint of what is asked

    async def was_done(self, store: Store, task_id: str, uid: str) -> EventRow | None:
        """The event of the write that was made for this key; None when none was.

        Raises:
            KeyReused: the key was used for something else.
        """
        text = f'"once":"{self.mark.partition(".")[0]}.'
        rows = await store.query("find_once", uid=uid, text=text)
        if not rows:
            return None
        found = EventRow(*rows[0])
        if f'"once":"{self.mark}"' not in found.author:
            raise KeyReused(task_id, self.key, found.kind)
        return found


def once_of(key: str | None, verb: str, *asked: Any) -> Once | None:
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
