"""The interface of an engine; what its rows hold is in rows.py.

An engine knows SQL (or, for the oracle, dictionaries) and nothing of Python values: payloads are
sealed bytes, moments are milliseconds. It has two doors. `commit` takes writes and makes them durable
as one transaction; a write whose condition does not hold changes nothing and answers None. `query`
reads. The verbs and queries are named alike in both engines, one file each; the files of
`sqlite/queries` are the plainest to read.

| verb              | changes                                                 | answers None when                    |
|-------------------|---------------------------------------------------------|--------------------------------------|
| register_worker   | this process's row                                      | (never)                              |
| beat              | this process's count of beats                           | the row is gone                      |
| announce          | what this process says it can carry on                  | the row is gone                      |
| ask_worker        | what an operator asked of a process                     | the row is gone                      |
| create_task       | a new task with state 0, a free lease, event 1          | the id is in use                     |
| import_task       | a task with all its rows, as another store gave them    | its id or its uid is in use          |
| restart_task      | the same, and the finished one before it is history     | that one is not finished or current  |
| claim             | epoch + 1, this process holds the lease, a new attempt  | the lease or the status has changed  |
| claim_free        | the same, of a running task whose lease is free         | as above, or its rows are locked     |
| release           | the lease is free, the attempt has ended                | the lease is not ours any more       |
| stand_down        | how an attempt ended: nothing of it runs any more       | it has not ended, or has said so     |
| postpone          | when a task begins, and with what                       | an attempt has begun it              |
| reap              | a dead process's lease is free, the loss is counted     | lease changed, or a beat since       |
| flag_attempt      | one more event: something is said of the attempt        | lease or version has changed since   |
| take_slot         | one of a limit's slots is this attempt's                | it was taken meanwhile               |
| free_slot         | a slot is gone                                          | it is another's by now               |
| checkpoint        | one more checkpoint, which is the state                 | lease lost, wrong status, other base |
| move_task         | the status, perhaps with a checkpoint; ends the attempt | lease lost, wrong status, other base |
| mark_progress     | the progress                                            | lease lost, wrong status             |
| rollback          | an earlier checkpoint is the state; epoch + 1           | wrong status, changed since          |
| invalidate        | checkpoints no longer valid; the state falls back       | changed since it was read            |
| pin               | whether a checkpoint is kept by gc                      | no such checkpoint                   |
| append_entry      | one more entry of the journal                           | lease lost, or the position is taken |
| complete_function | a durable function's result; its task has completed     | lease lost, not running              |
| begin_line        | a new line of the journal, with new arguments           | lease lost, not running              |
| rearm_pause       | when an open question is looked at next                 | answered, or looked at meanwhile     |
| remind_pause      | the same, with an event                                 | answered, or looked at meanwhile     |
| rearm_task        | when a paused task is looked at next                    | not paused, or looked at meanwhile   |
| note_rate_limit   | how often a provider asked for patience, and until when | (never)                              |
| put_memory        | what a memory layer keeps under a key                   | lease lost, or changed since read    |
| write_memory      | the same of many keys, all of them or none              | lease lost, or one changed since     |
| record_memory     | one value, with the journal entry that tells of it      | lease lost, or the position is taken |
| drop_memory       | nothing is kept under that key                          | nothing was                          |
| fork_function     | a new durable function's task, with entries of another  | the id is in use                     |
| start_hidden      | a new durable function's task, hidden in its parent     | the id is in use                     |
| set_switch        | whether a task, or all, are stopped from outside        | (never)                              |
| put_chunk         | a part of bytes too large for one row                   | (never)                              |
| archive           | whether the task is out of sight                        | not finished                         |
| delete_task       | the task is gone but for its tombstone                  | changed since it was read            |
| rebase            | a delta becomes a keyframe with the same content        | the checkpoint is gone               |
| prune             | a checkpoint is gone                                    | it is the state, pinned, or a base   |
| drop_chunks       | chunks that no checkpoint names are gone                | a checkpoint names them              |
| reseal_task       | a task's sealed columns, under another key              | changed since it was read            |
| reseal_checkpoint | the same frame under another key                        | changed since it was read            |
| reseal_event      | the same body under another key; the chain holds        | changed since it was read            |
| reseal_entry      | the same entry under another key                        | changed since it was read            |
| reseal_call       | a durable function's arguments, under another key       | changed since it was read            |
| reseal_pause      | a question and its answer, under another key            | changed since it was read            |
| reseal_signal     | what a signal carries, under another key                | changed since it was read            |
| add_value         | a named value of a task or a namespace                  | the name is taken                    |
| change_value      | another value under the name                            | changed since it was read            |
| drop_value        | the value is gone                                       | changed since it was read            |
| reseal_value      | the same value under another key                        | changed since it was read            |
| deliver           | how many of a task's events a handler has had           | it has had as many                   |
| reseal_memory     | what a memory layer keeps, under another key            | changed since it was read            |
| add_webhook       | where events of a namespace are sent to                 | the id is taken                      |
| change_webhook    | another record of it                                    | changed since it was read            |
| mark_webhook      | which process sends to it; since when all tries failed  | another process has the post         |
| drop_webhook      | it is gone, with its messages                           | changed since it was read            |
| add_delivery      | one message for a webhook                               | it is there already, or no webhook   |
| record_delivery   | how a try ended, and when the next is due               | the try is recorded already          |
| drop_deliveries   | messages from before a moment are gone                  | there are none                       |
| reseal_webhook    | the same record under another key                       | changed since it was read            |
| reseal_delivery   | the same message under another key                      | changed since it was read            |
| forget_worker     | a dead process's row is gone                            | it holds a lease                     |
"""

# No `from __future__ import annotations` here: a NamedTuple compiles each annotation that is text, when it is made.
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from perdure._store.rows import Params, Row
from perdure._store.write import Write

T = TypeVar("T")
# The kind of a change, for subscribers: see bell.py.
Kinds = frozenset[str]
ALL_KINDS: Kinds = frozenset({"work", "moved", "changed"})


class Line(Protocol):
    """The way to the other processes that use a store."""

    has_to_be_told: bool  # others hear nothing unless they are told
    is_open: bool  # what others say is heard

    def tell(self, kinds: Kinds) -> None:
        """Tell others; if that cannot be done, they find out by themselves."""
        ...

    def hear(self) -> Kinds:
        """Wait until others have said something, a second at most; what it was."""
        ...

    def interrupt(self) -> None:
        """Let `hear` return now. From any thread."""
        ...

    def hang_up(self) -> None:
        """Stop listening; the next `hear` begins anew."""
        ...


class Reading(Protocol):
    """The queries of a store."""

    def query(self, name: str, params: Params) -> list[Row]:
        """Read; a store that was never written to answers with no rows."""
        ...


class Engine(Reading, Protocol):
    kind: str  # "sqlite", "postgres", "memory"
    place: str  # what a person calls this store
    is_local: bool  # every process that uses it runs on this machine

    def commit(self, writes: Sequence[Write]) -> list[Row | None]:
        """Make a prefix of `writes` durable in one transaction; answer one row (or None) for each of it.

        Raises:
            Again: a passing conflict; nothing was written, send the same writes again.
            StoreUnreachable: no connection; nothing of this call is in, as far as can be known.
            StoreUnavailable: the transaction was rolled back as a whole.
        """
        ...

    def at_one_moment(self, act: Callable[["Reading"], T]) -> T:
        """The result of `act`, whose queries all see the store as it is at one moment, whatever is written meanwhile.
        `act` only reads: it may be run again when a connection is lost."""
        ...

    def beat(self, worker: str) -> bool:
        """Have the process's row beat beside its other writes, where none of those can keep it waiting; False where
        they are one queue anyway: there a beat is a write like any other.

        Raises:
            PerdureError: it could not be done now.
        """
        ...

    def line(self) -> Line | None:
        """The way to other processes that use this store, always the same; None where there are none."""
        ...

    def close(self) -> None: ...

    def mark_forked(self) -> None:
        """Called in the child of a fork: leave the parent's connections alone."""
        ...


class Again(Exception):
    """A passing conflict (deadlock, serialisation): the batch was rolled back and can be sent again."""


class OldReader(NamedTuple):
    """A reader of an old state of the store, so that nothing written since can be cleaned up."""

    who: str  # the process, or the server's
    what: str  # since when, and what follows from it
    do: str
