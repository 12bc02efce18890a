"""Every exception perdure raises, and what each one promises.

    PerdureError
    ├── NotFound                 no such task, checkpoint or event                         exit 3
    ├── InvalidInput             refused before anything was written                       exit 2
    │   ├── InvalidId            an id that a person cannot type or read
    │   ├── NotStorable          a value that would change when stored; names the path
    │   ├── TooLarge             a state or value over its size limit
    │   ├── InvalidData          a value that does not match its schema
    │   ├── NotResumable         a state that is not enough to continue from
    │   ├── PathRefused          not a plain file inside its folder
    │   ├── AddressRefused       an address of the web that no request may go to
    │   └── InvalidPayload       a pause without a field that its reason needs
    ├── Conflict                 another process was first; nothing was written            exit 4
    │   ├── AlreadyExists        create() of an id that is in use
    │   ├── InvalidTransition    the task's status does not allow this
    │   │   └── TaskBlocked      tasks that it depends on have not completed
    │   ├── AlreadyDecided       a question that another person or a timer has answered
    │   ├── KeyReused            a once= key that was used for another request
    │   ├── StaleVersion         the record changed since it was read
    │   ├── LeaseHeld            another attempt is alive
    │   ├── LeaseLost            another attempt has taken the task, or this one was closed
    │   ├── ShellBusy            another command runs in the foreground of a shell
    │   ├── UnitHeld             another process writes to a unit
    │   ├── OutOfOrder           an item of a plan before an earlier one is done
    │   └── DependencyCycle      tasks that would wait for each other forever
    ├── ReplayDiverged           the code makes another call than its journal holds        exit 4
    ├── StepFailed               a step raised an exception that cannot be rebuilt         exit 1
    ├── EffectUncertain          the outcome of an effect is unknown                       exit 1
    ├── ResultNotStorable        an effect was done, but its result cannot be stored       exit 1
    ├── BudgetExhausted          a task has spent its budget; no model call was made       exit 1
    ├── NoTask                   an effect was called outside a durable function           exit 2
    ├── NotAllowed               the caller may not do this                                exit 5
    │   └── KillSwitchOn         a person has stopped the task with the kill switch
    ├── CutFailed                a folder could not be saved; earlier saves are intact     exit 1
    ├── Incompatible             the environment has changed since the checkpoint          exit 4
    ├── RestoreFailed            a unit could not be restored; the restore was undone      exit 1
    ├── SecretMissing            a secret is not at the place that its reference names     exit 5
    ├── CredentialRefused        a credential has expired and could not be renewed         exit 5
    ├── BundleRefused            a bundle is damaged, altered, newer or unsafe             exit 2
    ├── Rejected                 a person rejected what a task asked for                   exit 1
    ├── RateLimited              a provider's limit lasts longer than the task may wait    exit 1
    ├── TaskFailed               the awaited task ended with another status                exit 1
    ├── TimedOut                 the wait took longer than its timeout                     exit 6
    ├── UnitEnded                a shell, service or other unit has ended                  exit 1
    ├── RequestFailed            a kept request has no complete answer                     exit 1
    ├── KeeperUnavailable        the keeper could not be used                              exit 7
    ├── SessionUnavailable       a database session could not be opened or used            exit 7
    ├── SessionLost              the server has ended a kept session                       exit 1
    ├── SqlFailed                a database refused a statement                            exit 1
    ├── TransactionLost          a kept transaction has ended                              exit 1
    ├── StatementUnanswered      a statement was sent before; its answer is not stored     exit 1
    ├── KeyMissing               a record is sealed with a key that perdure does not have  exit 7
    ├── RecordDamaged            a record's bytes differ from what was written             exit 7
    │   └── JournalDamaged       a journal entry is damaged; a fork before it can continue
    └── StoreUnavailable         the store could not be used                               exit 7
        ├── StoreUnreachable     no connection, or a commit with an unknown outcome
        ├── StoreFull            no space left
        ├── StoreBusy            another process holds the store for too long
        ├── StoreDamaged         the database file is broken
        ├── StoreNewer           a newer perdure created the store
        ├── StoreRefused         the place or the SQLite is unsafe, or another user owns the store
        ├── StoreForked          opened before os.fork(), used after it
        └── StoreClosed          close() was called

Each message has three parts: what happened, what was kept, what to do. The values are attributes of the exception, so
no program has to parse the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from shlex import quote


class PerdureError(Exception):
    """The base class of all exceptions: `what` happened, what was `kept`, what to `do`."""

    exit_code = 1
    what: str
    kept: str
    do: str

    def __init__(self, what: str, *, kept: str = "", do: str = "") -> None:
        self.what, self.kept, self.do = what, kept, do
        super().__init__(what)

    def __str__(self) -> str:
        lines = [self.what]
        if self.kept:
            lines.append(f"  kept: {self.kept}")
        if self.do:
            lines.append(f"  do:   {self.do}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        return (_revive, (type(self), self.what, self.kept, self.do, self.__dict__))


def _revive(cls: type[PerdureError], what: str, kept: str, do: str, values: dict[str, object]) -> PerdureError:
    error = cls.__new__(cls)
    PerdureError.__init__(error, what, kept=kept, do=do)
    error.__dict__.update(values)
    return error


# ── not there ────────────────────────────────────────────────────────────────────────────────────


class NotFound(PerdureError):
    """No such task, checkpoint or event; the message names the store that was searched."""

    exit_code = 3
    kind: str
    name: str
    store: str

    def __init__(self, kind: str, name: str, store: str, *, do: str = "") -> None:
        self.kind, self.name, self.store = kind, name, store
        super().__init__(
            f"no {kind} {name!r} in {store}",
            kept="nothing was changed",
            do=do or "`perdure tasks` lists the tasks; PERDURE_URL or --store chooses another store",
        )


# ── refused before anything was written ──────────────────────────────────────────────────────────


class InvalidInput(PerdureError, ValueError):
    """The input was refused, and nothing was written. `errors` has each place that is wrong: its path and a message."""

    exit_code = 2
    errors: Sequence[Mapping[str, object]] = ()

    def __init__(
        self,
        what: str,
        *,
        do: str = "",
        kept: str = "nothing was written",
        errors: Sequence[Mapping[str, object]] = (),
    ) -> None:
        super().__init__(what, kept=kept, do=do)
        if errors:
            self.errors = errors


class InvalidId(InvalidInput):
    """An id that a person cannot type or read."""


class NotStorable(InvalidInput):
    """A value that would change when it is stored and read back; `path` leads to it."""

    path: str
    problem: str

    def __init__(self, path: str, problem: str, *, do: str = "", kept: str = "nothing was written") -> None:
        self.path, self.problem = path, problem
        where = f"at {path!r}" if path else "as a whole"
        super().__init__(f"the value {where} cannot be stored: {problem}", do=do, kept=kept)


class TooLarge(InvalidInput):
    """A value larger than its limit; `size` and `limit` are in bytes."""

    size: int
    limit: int

    def __init__(self, what: str, size: int, limit: int) -> None:
        self.size, self.limit = size, limit
        super().__init__(
            f"{what} is {size:,} bytes; the limit is {limit:,}",
            do="store large data in a file or another database, and its name in the state",
        )


class InvalidPayload(InvalidInput):
    """A pause whose fields do not match its reason."""

    reason: str
    problem: str

    def __init__(self, reason: str, problem: str, *, do: str = "") -> None:
        self.reason, self.problem = reason, problem
        super().__init__(
            f"a pause for {reason!r} {problem}", do=do or "docs/reference/pauses.md lists the fields of each reason"
        )


class InvalidData(InvalidInput):
    """A value that does not match its schema; `path` leads to it."""

    path: str
    problem: str

    def __init__(self, path: str, problem: str) -> None:
        self.path, self.problem = path, problem
        where = f"at {path!r}" if path else "as a whole"
        super().__init__(f"the data {where} does not match its schema: {problem}", kept="the data as it was")


class NotResumable(InvalidInput):
    """A state that is not enough to continue from; `field` is the missing field, if it is known."""

    field: str
    problem: str

    def __init__(self, field: str, problem: str) -> None:
        self.field, self.problem = field, problem
        where = f"; it lacks the field {field!r}" if field else ""
        super().__init__(
            f"the state is not enough to continue from{where}: {problem}", do="add what is missing to the checkpoint"
        )


class PathRefused(InvalidInput):
    """A file that is outside its folder, or is not a plain file."""

    path: str
    why: str

    def __init__(self, path: str, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(
            f"refused the path {path!r}: {why}", do="give the path of a plain file, relative to the folder"
        )


class AddressRefused(InvalidInput):
    """An address of the web that no request may go to: not public, or oddly written."""

    address: str
    why: str

    def __init__(self, address: str, why: str, *, do: str = "") -> None:
        self.address, self.why = address, why
        super().__init__(f"refused the address {address!r}: {why}", do=do or "give the https address of a public host")


# ── another process was first ────────────────────────────────────────────────────────────────────


class Conflict(PerdureError):
    """Another process was first; nothing was written."""

    exit_code = 4

    def __init__(self, what: str, *, kept: str = "the task as it is; nothing was written", do: str = "") -> None:
        super().__init__(what, kept=kept, do=do)


class AlreadyExists(Conflict):
    """The id is in use."""

    task_id: str
    status: str

    def __init__(self, task_id: str, status: str) -> None:
        self.task_id, self.status = task_id, status
        super().__init__(
            f"task {task_id!r} already exists and is {status}",
            do="open() attaches to it; open(again=True) starts a new task in place of a finished one",
        )


class InvalidTransition(Conflict):
    """The task's status does not allow this move."""

    task_id: str
    status: str
    move: str

    def __init__(self, task_id: str, status: str, move: str, *, do: str = "") -> None:
        self.task_id, self.status, self.move = task_id, status, move
        super().__init__(f"task {task_id!r} is {status} and cannot {move}", do=do)


class TaskBlocked(InvalidTransition):
    """The task depends on tasks that have not completed; `waits_for` has their statuses."""

    waits_for: dict[str, str | None]

    def __init__(self, task_id: str, status: str, waits_for: Mapping[str, str | None]) -> None:
        self.waits_for = dict(waits_for)
        named = ", ".join(f"{id} ({status or 'not created yet'})" for id, status in waits_for.items())
        super().__init__(
            task_id, status, f"begin: it depends on {named}", do="complete those tasks; this one then begins"
        )


class AlreadyDecided(Conflict):
    """The first decision stands: `by` whom ("" of a timer), `at` which moment, and the `decision`."""

    task_id: str
    pause_id: str
    by: str
    at: datetime | None
    decision: str

    def __init__(self, task_id: str, pause_id: str, by: str, at: datetime | None, what: str) -> None:
        self.task_id, self.pause_id, self.by, self.at, self.decision = task_id, pause_id, by, at, what
        when = f" at {at:%Y-%m-%d %H:%M:%S} UTC" if at is not None else ""
        whose = f" by {by}" if by else ""
        super().__init__(
            f"the question of task {task_id!r} is {what} already{whose}{when}",
            kept="the first decision; this one changed nothing",
            do=f"`perdure show {quote(task_id)}` tells where the task stands",
        )


class KeyReused(Conflict):
    """A key for doing something once was used for something else before."""

    task_id: str
    key: str
    kind: str

    def __init__(self, task_id: str, key: str, kind: str) -> None:
        self.task_id, self.key, self.kind = task_id, key, kind
        super().__init__(
            f"the key {key!r} was used for another request on task {task_id!r}, which is on record as {kind!r}",
            kept="what the first request wrote; this one changed nothing",
            do="choose a new key for a new request; repeat one only as it was",
        )


class StaleVersion(Conflict):
    """The record changed since it was read."""

    task_id: str
    expected: int
    found: int
    path: str

    def __init__(self, task_id: str, expected: int, found: int, *, path: str = "", kind: str = "task") -> None:
        self.task_id, self.expected, self.found, self.path = task_id, expected, found, path
        what = f"{kind} {task_id!r} is at version {found}; this change is for version {expected}"
        if path:
            what = (
                f"another writer changed {path!r} of task {task_id!r} since this code read it: "
                f"it read checkpoint {expected}, and the task is at checkpoint {found}"
            )
        super().__init__(
            what,
            kept="the write of the other process; this change was not written",
            do="read the task again (await task.record()) and repeat the change"
            if kind == "task"
            else f"read the {kind} again and repeat the change",
        )


class LeaseHeld(Conflict):
    """Another attempt is alive and holds the right to write."""

    task_id: str
    by: str
    host: str
    pid: int

    def __init__(self, task_id: str, by: str, host: str, pid: int) -> None:
        self.task_id, self.by, self.host, self.pid = task_id, by, host, pid
        super().__init__(
            f"{by} is working on task {task_id!r} (pid {pid} on {host})",
            do=f"wait until it ends, or take the task from it: `perdure take {quote(task_id)}`. The task of a dead "
            "process is free at once on the same host, and after one lease (5 s) on another host",
        )


class LeaseLost(Conflict):
    """This attempt may no longer write; its last write changed nothing."""

    task_id: str
    why: str

    def __init__(self, task_id: str, why: str) -> None:
        self.task_id, self.why = task_id, why
        super().__init__(
            f"the attempt on task {task_id!r} has lost its lease: {why}",
            kept="every write that was acknowledged before; this write changed nothing",
            do="stop this attempt; open the task again to read its state",
        )


class ShellBusy(Conflict):
    """Another command runs in the foreground of a shell; nothing was typed."""

    unit: str
    in_front: str

    def __init__(self, unit: str, what: str) -> None:
        self.unit, self.in_front = unit, what
        super().__init__(
            f"the shell is not at its prompt: {what}",
            kept="the running command and the input line; nothing was typed",
            do="wait for the command, answer it, stop it with signal(), or use another shell",
        )


class UnitHeld(Conflict):
    """Another process, or another writer, has the right to write to a unit; nothing was written."""

    unit: str
    pid: int
    by: str

    def __init__(self, unit: str, pid: int, by: str = "") -> None:
        self.unit, self.pid, self.by = unit, pid, by
        who = by or (f"process {pid}" if pid else "a later attempt, or a person who took it,")
        super().__init__(
            f"{who} writes to unit {unit}",
            kept="the unit as it is; nothing was written",
            do="read from it, or take it: take(), `perdure attach --take`",
        )


class OutOfOrder(Conflict):
    """An item of a plan, or a step of a procedure, before an earlier one is done."""

    item: str
    waiting: str

    def __init__(self, item: str, waiting: str) -> None:
        self.item, self.waiting = item, waiting
        super().__init__(
            f"{item!r} comes after {waiting!r}, which is not done",
            do="do the earlier one first, or give the reason why this one comes first; the reason is recorded",
        )


class DependencyCycle(Conflict):
    """Tasks that would wait for each other forever."""

    path: tuple[str, ...]

    def __init__(self, path: tuple[str, ...]) -> None:
        self.path = path
        super().__init__(
            f"the tasks would wait for each other: {' → '.join(path)}", do="remove one of these dependencies"
        )


# ── durable functions ────────────────────────────────────────────────────────────────────────────


class ReplayDiverged(PerdureError):
    """The function made another call than its journal holds; nothing ran."""

    exit_code = 4
    task_id: str
    position: int
    recorded: str
    asked: str

    def __init__(self, task_id: str, position: int, recorded: str, asked: str, *, do: str = "") -> None:
        self.task_id, self.position, self.recorded, self.asked = task_id, position, recorded, asked
        super().__init__(
            f"task {task_id!r} asked for {asked!r}; entry {position} of its journal is {recorded!r}",
            kept="all entries; the call did not run, and the task is paused",
            do=do or "put the calls back in order, keep both ways with patched(), or publish @durable(version=2)",
        )


class StepFailed(PerdureError):
    """A step or effect raised an exception that is neither builtin nor declared nor registered."""

    type_name: str
    message: str

    def __init__(self, type_name: str, message: str, advice: str = "") -> None:
        self.type_name, self.message = type_name, message
        advice = advice or "declare the exception on the step with raises=[…], and this raises the exception itself"
        super().__init__(f"{type_name}: {message}", do=advice)


class EffectUncertain(PerdureError):
    """The outcome of an effect is unknown; it was not run again."""

    name: str
    why: str

    def __init__(self, name: str, why: str) -> None:
        self.name, self.why = name, why
        super().__init__(
            f"the outcome of {name} is unknown: {why}",
            kept="the record that it was started, with its key",
            do="look for the key at the target, then decide",
        )
        self.args: tuple[object, ...] = (name, why)  # with these it is rebuilt from a journal

    def __reduce__(self) -> tuple[object, ...]:
        return (EffectUncertain, (self.name, self.why))


class ResultNotStorable(PerdureError):
    """An effect was done, but its result cannot be stored; it is not run again."""

    name: str
    path: str
    problem: str

    def __init__(self, name: str, path: str, problem: str) -> None:
        self.name, self.path, self.problem = name, path, problem
        where = f" at {path!r}" if path else ""
        super().__init__(
            f"{name} was done, but its result cannot be stored{where}: {problem}",
            kept="the record that it was done, with its key; it is not run again",
            do="return plain data from the effect, and find its result at the target by the key",
        )
        self.args: tuple[object, ...] = (name, path, problem)

    def __reduce__(self) -> tuple[object, ...]:
        return (ResultNotStorable, (self.name, self.path, self.problem))


class BudgetExhausted(PerdureError):
    """A task has spent its budget; the next model call was not made and not recorded."""

    task_id: str
    budget: str
    limit: str
    spent: str

    def __init__(self, task_id: str, what: str, limit: str, spent: str) -> None:
        self.task_id, self.budget, self.limit, self.spent = task_id, what, limit, spent
        super().__init__(
            f"task {task_id!r} has spent {spent} of its budget of {limit} ({what})",
            kept="all finished calls; this call was not made",
            do="resume the task with a larger budget: fn.options(budget=Budget(…)), or catch this error",
        )
        self.args: tuple[object, ...] = (task_id, what, limit, spent)


class NoTask(PerdureError, RuntimeError):
    """An effect or a pause was called where no task can record it; it did not run."""

    exit_code = 2
    name: str

    def __init__(self, name: str, *, is_effect: bool = False, where: str = "a durable function") -> None:
        self.name = name
        do = f"call it inside {where} that app.run(…) or a worker runs (in another thread: bind(…))"
        super().__init__(
            f"{'the effect ' if is_effect else ''}{name} was called outside {where}",
            kept="it did not run",
            do=f"{do}, or call {name}.plain(…) to run it without any guarantee" if is_effect else do,
        )


# ── the caller, the wait ─────────────────────────────────────────────────────────────────────────


class NotAllowed(PerdureError):
    """The caller may not do this."""

    exit_code = 5


class Rejected(PerdureError):
    """A person (`by`) rejected it, or it expired without an answer and its default is no (`expired`)."""

    question: str
    by: str
    comment: str
    expired: bool

    def __init__(self, question: str, by: str, comment: str = "", *, expired: bool = False) -> None:
        self.question, self.by, self.comment, self.expired = question, by, comment, expired
        why = f" ({comment})" if comment else ""
        said = f"{question!r} expired without an answer" if expired else f"{by or 'a person'} rejected {question!r}"
        super().__init__(
            f"{said}{why}",
            kept="all finished calls",
            do="catch Rejected in the durable function if the task should continue without approval",
        )


class RateLimited(PerdureError):
    """A provider refuses requests until `reset_at`, which is longer than the task may wait."""

    provider: str
    reset_at: datetime

    def __init__(self, provider: str, reset_at: datetime) -> None:
        self.provider, self.reset_at = provider, reset_at
        super().__init__(
            f"{provider or 'the provider'} refuses requests until {reset_at.isoformat(timespec='seconds')}",
            kept="all finished calls; perdure did not wait",
            do="raise max_wait, or use another provider",
        )


class KillSwitchOn(NotAllowed):
    """A person has stopped this task, or all tasks, with the kill switch; the call was not made."""

    task_id: str
    why: str
    by: str

    def __init__(self, task_id: str, why: str, by: str) -> None:
        self.task_id, self.why, self.by = task_id, why, by
        super().__init__(
            f"{by} has stopped task {task_id!r} with the kill switch" + (f": {why}" if why else ""),
            kept="all finished calls; this call was not made",
            do=f"`perdure kill-switch off {quote(task_id)}` releases the task; `perdure kill-switch list` lists all",
        )


class TaskFailed(PerdureError):
    """The awaited task ended with another status; `error` is its error."""

    task_id: str
    status: str
    wanted: str
    error: object

    def __init__(self, task_id: str, status: str, wanted: str, error: object = None) -> None:
        self.task_id, self.status, self.wanted, self.error = task_id, status, wanted, error
        super().__init__(
            f"task {task_id!r} {'was' if status == 'cancelled' else 'has'} {status}; the caller waited for {wanted}",
            kept="the task, with its error and its last state",
            do=f"`perdure show {quote(task_id)}` shows why"
            + (f"; `perdure resume {quote(task_id)}` starts a new attempt" if status == "failed" else ""),
        )


class TimedOut(PerdureError, TimeoutError):
    """The wait took longer than its timeout; the task itself continues."""

    exit_code = 6


# ── saving and restoring the runtime ─────────────────────────────────────────────────────────────


class CutFailed(PerdureError):
    """A folder could not be saved."""

    folder: str
    problem: str

    def __init__(
        self, folder: str, problem: str, *, do: str = "free some space, or repair what is named, and save again"
    ):
        self.folder, self.problem = folder, problem
        super().__init__(f"cannot save {folder}: {problem}", kept="the folder as it is, and every earlier save", do=do)


class Incompatible(PerdureError):
    """The environment has changed since the checkpoint; `changed` names the fingerprints that differ."""

    exit_code = 4
    checkpoint: str
    changed: tuple[tuple[str, str], ...]

    def __init__(self, checkpoint: str, changed: Sequence[tuple[str, str]]) -> None:
        self.checkpoint, self.changed = checkpoint, tuple(changed)
        told = "; ".join(f"{name}: {why}" for name, why in self.changed)
        super().__init__(
            f"the environment has changed since checkpoint {checkpoint}: {told}",
            kept="everything; nothing was started or changed",
            do="undo the change, or choose another policy for that fingerprint (warn, rebuild, continue)",
        )


class RestoreFailed(PerdureError):
    """A unit could not be restored, and the restore was undone. `leftovers` names what could not be undone."""

    unit: str
    problem: str
    leftovers: tuple[str, ...]

    def __init__(self, unit: str, problem: str, leftovers: Sequence[str] = ()) -> None:
        self.unit, self.problem, self.leftovers = unit, problem, tuple(leftovers)
        left = f"; not undone: {', '.join(self.leftovers)}" if self.leftovers else ""
        super().__init__(
            f"cannot restore {unit}: {problem}",
            kept=f"the checkpoint, and everything as it was before the restore{left}",
            do="repair what is named and restore again; `perdure resume --plan ID` shows what would be done",
        )


class SecretMissing(PerdureError):
    """A secret is not at the place that its reference names; the message never shows a value."""

    exit_code = 5
    reference: str
    problem: str

    def __init__(self, reference: str, problem: str) -> None:
        self.reference, self.problem = reference, problem
        super().__init__(
            f"cannot read {reference}: {problem}",
            kept="everything else; nothing was started with an empty secret",
            do="put the secret in its place on this machine, then resume the task",
        )


class CredentialRefused(PerdureError):
    """No way to get a credential worked; `tried` says why each failed."""

    exit_code = 5
    name: str
    tried: tuple[tuple[str, str], ...]

    def __init__(self, name: str, tried: Sequence[tuple[str, str]]) -> None:
        self.name, self.tried = name, tuple(tried)
        told = "; ".join(f"{way}: {why}" for way, why in tried) or "no function that renews it is known"
        super().__init__(
            f"no credential for {name}: {told}",
            kept="everything else; nothing was started without it",
            do="put a new credential in its place, then answer the task's question or resume it",
        )


class BundleRefused(PerdureError):
    """A bundle cannot be trusted or read; nothing was imported."""

    exit_code = 2
    bundle: str
    problem: str

    def __init__(self, bundle: str, problem: str, *, do: str = "export the task again on its old machine") -> None:
        self.bundle, self.problem = bundle, problem
        super().__init__(f"refused bundle {bundle}: {problem}", kept="the store as it was; nothing was written", do=do)


# ── units ────────────────────────────────────────────────────────────────────────────────────────


class UnitEnded(PerdureError):
    """A unit has ended, or did not start; `why` says what is known."""

    unit: str
    why: str

    def __init__(self, unit: str, why: str) -> None:
        self.unit, self.why = unit, why
        super().__init__(
            f"unit {unit or '?'}: {why}",
            kept="its record and its output; `perdure units` shows it",
            do="open it again: with rebuild='auto' perdure starts it again from its recipe",
        )


class RequestFailed(PerdureError):
    """A kept request has no complete answer; `sent` is False if it was certainly never sent."""

    request: str
    why: str
    sent: bool

    def __init__(self, request: str, why: str, sent: bool) -> None:
        self.request, self.why, self.sent = request, why, sent
        super().__init__(
            f"request {request!r}: {why}",
            kept="the received part of its answer, readable by offset" if sent else "nothing was sent",
            do="ask the server what it knows about the request, then send another under a new name"
            if sent
            else "send it again under a new name",
        )


class KeeperUnavailable(PerdureError):
    """The keeper could not be started or does not answer."""

    exit_code = 7


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────


class SessionUnavailable(PerdureError):
    """A database session could not be opened, or its process does not answer."""

    exit_code = 7
    session: str
    why: str

    def __init__(self, session: str, why: str, *, log: str = "") -> None:
        self.session, self.why = session, why
        super().__init__(
            f"cannot use the session {session!r}: {why}",
            kept="the session and its transaction, if they still exist",
            do=f"read {log}" if log else "check the address and the server, then open the session again",
        )


class SessionLost(PerdureError):
    """A kept session has ended. Open it again: its verdict says what happened to its transaction."""

    session: str
    why: str

    def __init__(self, session: str, why: str) -> None:
        self.session, self.why = session, why
        super().__init__(
            f"the session {session!r} is lost: {why}",
            kept="every committed transaction",
            do="open the session again: its verdict says what happened to the open transaction",
        )


_LOCKED = "BusyError"
_WHEN_LOCKED = (
    "try again when the other connection has let go of the file; `perdure units` lists the sessions that perdure "
    "keeps, and `perdure units ID --release NAME` ends one"
)


class SqlFailed(PerdureError):
    """A database refused a statement; `code` is the database's error code."""

    session: str
    code: str
    message: str

    def __init__(self, session: str, code: str, message: str) -> None:
        self.session, self.code, self.message = session, code, message
        super().__init__(
            f"{message} ({code})",
            kept=f"the session {session!r}, and its transaction if one is open",
            do=_WHEN_LOCKED if code == _LOCKED else "change the statement, or roll back",
        )
        self.args: tuple[object, ...] = (session, code, message)

    def __reduce__(self) -> tuple[object, ...]:
        return (SqlFailed, (self.session, self.code, self.message))


class TransactionLost(PerdureError):
    """A transaction that was open in an earlier attempt has ended."""

    session: str
    why: str
    is_uncertain: bool

    def __init__(self, session: str, why: str, is_uncertain: bool = False) -> None:
        """`is_uncertain`: it may have been committed."""
        self.session, self.why, self.is_uncertain = session, why, is_uncertain
        super().__init__(
            f"a transaction of the session {session!r} has ended: {why}",
            kept="every transaction committed before it; nothing was run again"
            if is_uncertain
            else "every transaction committed before it",
            do="check in the database whether it was committed before you repeat it"
            if is_uncertain
            else "begin a new transaction, in a new attempt or a new block",
        )
        self.args: tuple[object, ...] = (session, why, is_uncertain)  # with these it is rebuilt from a journal

    def __reduce__(self) -> tuple[object, ...]:
        return (TransactionLost, (self.session, self.why, self.is_uncertain))


class StatementUnanswered(PerdureError):
    """The answer to a statement of a durable function is not stored, and the statement is not repeated."""

    session: str
    statement: str
    why: str

    def __init__(self, session: str, statement: str, why: str, do: str = "") -> None:
        self.session, self.statement, self.why = session, statement, why
        super().__init__(
            f"{statement[:80]!r} in the session {session!r}: {why}",
            kept="all work of the session; the statement was not run again",
            do=do
            or "read large results in a step that returns less; or roll the session's transaction back and resume the "
            "task, which runs the block again from its beginning",
        )
        self.args: tuple[object, ...] = (session, statement, why, do)

    def __reduce__(self) -> tuple[object, ...]:
        return (StatementUnanswered, (self.session, self.statement, self.why, self.do))


# ── bytes that cannot be read ────────────────────────────────────────────────────────────────────


class KeyMissing(PerdureError):
    """A record is sealed with a key that perdure does not have."""

    exit_code = 7
    key_id: str

    def __init__(self, key_id: str) -> None:
        self.key_id = key_id
        super().__init__(
            f"the record is sealed with key {key_id!r}, which perdure does not have",
            kept="the record, unread and unchanged",
            do="give the key with PERDURE_KEY, a key file or the keyring; `perdure keys list` lists the keys in use",
        )


class RecordDamaged(PerdureError):
    """A record's bytes differ from what was written; `what` names the record and the problem."""

    exit_code = 7
    record: str
    problem: str

    def __init__(
        self,
        record: str,
        problem: str,
        *,
        kept: str = "the record as it is, for inspection",
        do: str = "`perdure doctor` lists the damaged records; perdure uses the newest good checkpoint instead",
    ) -> None:
        self.record, self.problem = record, problem
        super().__init__(f"{record} is damaged: {problem}", kept=kept, do=do)


class JournalDamaged(RecordDamaged):
    """An entry of a task's journal cannot be read, so its function cannot continue; a fork before it can."""

    task_id: str
    position: int

    def __init__(self, task_id: str, position: int, problem: str) -> None:
        self.task_id, self.position = task_id, position
        super().__init__(
            f"entry {position} of the journal of task {task_id!r}",
            problem,
            kept="all other entries; nothing ran",
            do=f"`perdure fork {quote(task_id)} NEW --at {position - 1}` continues before it and settles the effects "
            "that started later; or restore the store from a backup",
        )


# ── the store ────────────────────────────────────────────────────────────────────────────────────


class StoreUnavailable(PerdureError):
    """The store could not be used."""

    exit_code = 7


class StoreUnreachable(StoreUnavailable):
    """No connection. The last write may or may not be stored: read before you try again."""


class StoreFull(StoreUnavailable):
    """No space left. Stored data is intact, and writing works again when there is space."""


class StoreBusy(StoreUnavailable):
    """Another process held the store for longer than perdure waits."""


class StoreDamaged(StoreUnavailable):
    """The database reports that its file is broken."""


class StoreNewer(StoreUnavailable):
    """A newer perdure created the store; this one does not touch it."""


class StoreRefused(StoreUnavailable):
    """This place or this SQLite could lose data, or the store belongs to another user."""


class StoreForked(StoreUnavailable):
    """The store was opened before os.fork() and used in the child."""

    def __init__(self) -> None:
        super().__init__(
            "this store was opened before os.fork() and cannot be used in the child",
            kept="the store of the parent, which still works",
            do="open a new Perdure() in the child process",
        )


class StoreClosed(StoreUnavailable):
    """close() was called."""

    def __init__(self) -> None:
        super().__init__("this store is closed", kept="every write that was acknowledged", do="open a new Perdure()")
