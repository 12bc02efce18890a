"""Every exception perdure raises, and what each one promises.

    PerdureError
    ├── NotFound                 no such task, checkpoint or event                         exit 3
    ├── InvalidInput             refused before anything was written                       exit 2
    │   ├── InvalidId            an id nobody could type or read
    │   ├── NotStorable          a value that would not come back as it was; names the path
    │   ├── TooLarge             a state or value past its limit
    │   ├── InvalidData          a value that does not fit its schema
    │   ├── NotResumable         a state that is not enough to go on with
    │   ├── PathRefused          a file outside of its folder, or none
    │   └── InvalidPayload       a pause without what its reason needs
    ├── Conflict                 somebody else was first; nothing was written              exit 4
    │   ├── AlreadyExists        create() of an id that is in use
    │   ├── InvalidTransition    the task's status does not allow this
    │   │   └── TaskBlocked      tasks it depends on have not completed
    │   ├── StaleVersion         the record changed since it was read
    │   ├── LeaseHeld            another attempt is alive
    │   ├── LeaseLost            another attempt has taken over, or this one was closed
    │   ├── ShellBusy            something else is in front in a shell
    │   ├── UnitHeld             another process writes to a unit
    │   ├── OutOfOrder           an item of a plan before the one that comes first
    │   └── DependencyCycle      tasks that would wait for each other for ever
    ├── ReplayDiverged           the code asks for another call than its journal holds     exit 4
    ├── StepFailed               a step ended with an exception that is not rebuilt        exit 1
    ├── EffectUncertain          an effect's outcome is not known, and it is not to be asked for   exit 1
    ├── ResultNotStorable        an effect was done, and its result could not be kept      exit 1
    ├── BudgetExhausted          a task has spent what it may; the next model call was not made   exit 1
    ├── NoTask                   an effect was called outside a durable function           exit 2
    ├── NotAllowed               the caller may not do this                                exit 5
    │   └── KillSwitchOn         somebody has stopped the task from outside
    ├── CutFailed                a folder could not be cut; earlier cuts are intact        exit 1
    ├── Incompatible             the world has changed since the checkpoint; nothing was touched   exit 4
    ├── RestoreFailed            something could not be brought back; all of it was undone exit 1
    ├── SecretMissing            a secret is not where its reference says                  exit 5
    ├── CredentialRefused        a credential has expired and could not be renewed         exit 5
    ├── BundleRefused            a bundle is damaged, altered, newer or unsafe             exit 2
    ├── Rejected                 a person said no to what a task asked for                 exit 1
    ├── RateLimited              a provider asks for more patience than there is           exit 1
    ├── TaskFailed               a task that was waited for ended otherwise                exit 1
    ├── TimedOut                 what was waited for did not come in time                  exit 6
    ├── UnitEnded                a shell, service or other live thing is not there any more   exit 1
    ├── RequestFailed            a kept request has no whole answer; `sent` says what is known   exit 1
    ├── KeeperUnavailable        the keeper of live things could not be used               exit 7
    ├── SessionUnavailable       a database session could not be opened or asked           exit 7
    ├── SessionLost              the server has ended a kept session                       exit 1
    ├── SqlFailed                a database refused a statement                            exit 1
    ├── TransactionLost          a kept transaction is not there any more                  exit 1
    ├── StatementUnanswered      a statement was sent before, and its answer is not kept   exit 1
    ├── KeyMissing               a record is sealed and its key is not here                exit 7
    ├── RecordDamaged            a record's bytes are not what was written                 exit 7
    │   └── JournalDamaged       one in the middle of a journal; a fork before it goes on
    └── StoreUnavailable         the store could not be used                               exit 7
        ├── StoreUnreachable     no connection, or a commit whose fate is unknown
        ├── StoreFull            no space left
        ├── StoreBusy            another process holds the store for too long
        ├── StoreDamaged         the database itself is broken
        ├── StoreNewer           made by a newer perdure
        ├── StoreRefused         this place or this SQLite would lose data, or is another user's
        ├── StoreForked          opened before os.fork(), used after it
        └── StoreClosed          close() was called

Each message has three parts: what happened, what was kept, what to do. The values stand on the
exception as attributes, so nobody parses the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from shlex import quote


class PerdureError(Exception):
    """The base of all of them: `what` happened, what was `kept`, what to `do`."""

    exit_code = 1

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

    def __init__(self, kind: str, name: str, store: str, *, do: str = "") -> None:
        self.kind, self.name, self.store = kind, name, store
        super().__init__(
            f"no {kind} {name!r} in {store}",
            kept="nothing was changed",
            do=do or "`perdure tasks` lists what is there; PERDURE_URL or --store chooses another store",
        )


# ── refused before anything was written ──────────────────────────────────────────────────────────


class InvalidInput(PerdureError, ValueError):
    """The input was refused, and nothing was written."""

    exit_code = 2

    def __init__(self, what: str, *, do: str = "", kept: str = "nothing was written") -> None:
        super().__init__(what, kept=kept, do=do)


class InvalidId(InvalidInput):
    """An id that nobody could type or read back."""


class NotStorable(InvalidInput):
    """A value that would not come back as it was; `path` leads to it."""

    def __init__(self, path: str, problem: str, *, do: str = "", kept: str = "nothing was written") -> None:
        self.path, self.problem = path, problem
        where = f"at {path!r}" if path else "as a whole"
        super().__init__(f"the value {where} cannot be stored: {problem}", do=do, kept=kept)


class TooLarge(InvalidInput):
    """A value past its limit, both in bytes."""

    def __init__(self, what: str, size: int, limit: int) -> None:
        self.size, self.limit = size, limit
        super().__init__(
            f"{what} is {size:,} bytes; the limit is {limit:,}",
            do="keep large data in a file or a database of its own, and its name in the state",
        )


class InvalidPayload(InvalidInput):
    """A pause whose payload does not fit its reason."""

    def __init__(self, reason: str, problem: str, *, do: str = "") -> None:
        self.reason, self.problem = reason, problem
        super().__init__(
            f"a pause for {reason!r} {problem}", do=do or "docs/reference/pauses.md lists what each reason takes"
        )


class InvalidData(InvalidInput):
    """A value that does not fit its schema; `path` leads to it."""

    def __init__(self, path: str, problem: str) -> None:
        self.path, self.problem = path, problem
        where = f"at {path!r}" if path else "as a whole"
        super().__init__(f"the data {where} does not fit its schema: {problem}", kept="the data as it was")


class NotResumable(InvalidInput):
    """A state that is not enough to go on with; `field` is what it lacks, if that is known."""

    def __init__(self, field: str, problem: str) -> None:
        self.field, self.problem = field, problem
        where = f"; the field {field!r} is needed" if field else ""
        super().__init__(f"the state is not enough to go on with{where}: {problem}", do="put it into the checkpoint")


class PathRefused(InvalidInput):
    """A file that does not lie inside its folder, or is no plain file."""

    def __init__(self, path: str, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(f"the path {path!r} is refused: {why}", do="give a path from the folder to a plain file in it")


# ── somebody else was first ──────────────────────────────────────────────────────────────────────


class Conflict(PerdureError):
    """The store has moved on; nothing was written."""

    exit_code = 4

    def __init__(self, what: str, *, kept: str = "the record as it stands; nothing was written", do: str = "") -> None:
        super().__init__(what, kept=kept, do=do)


class AlreadyExists(Conflict):
    """The id is in use."""

    def __init__(self, task_id: str, status: str) -> None:
        self.task_id, self.status = task_id, status
        super().__init__(
            f"task {task_id!r} exists already and is {status}",
            do="open() attaches to it; open(again=True) starts a finished one anew",
        )


class InvalidTransition(Conflict):
    """The task's status does not allow this move."""

    def __init__(self, task_id: str, status: str, move: str, *, do: str = "") -> None:
        self.task_id, self.status, self.move = task_id, status, move
        super().__init__(f"task {task_id!r} is {status} and cannot {move}", do=do)


class TaskBlocked(InvalidTransition):
    """The task depends on others, and not all of them have completed; `waits_for` has their statuses."""

    def __init__(self, task_id: str, status: str, waits_for: Mapping[str, str | None]) -> None:
        self.waits_for = dict(waits_for)
        named = ", ".join(f"{id} ({status or 'not there yet'})" for id, status in waits_for.items())
        super().__init__(task_id, status, f"begin: it depends on {named}", do="let them complete first; it then begins")


class StaleVersion(Conflict):
    """The record changed since it was read."""

    def __init__(self, task_id: str, expected: int, found: int, *, path: str = "") -> None:
        self.task_id, self.expected, self.found, self.path = task_id, expected, found, path
        what = f"task {task_id!r} is at version {found}; this change was made for version {expected}"
        if path:
            what = (
                f"another writer changed {path!r} of task {task_id!r} since this code read it: "
                f"it read checkpoint {expected}, and the task is at checkpoint {found}"
            )
        super().__init__(
            what,
            kept="what the other writer stored; nothing of this change was written",
            do="read the task again (await task.record()) and decide anew",
        )


class LeaseHeld(Conflict):
    """Another attempt is alive and holds the right to write."""

    def __init__(self, task_id: str, by: str, host: str, pid: int) -> None:
        self.task_id, self.by, self.host, self.pid = task_id, by, host, pid
        super().__init__(
            f"task {task_id!r} is being worked on by {by} (pid {pid} on {host})",
            do=f"wait until it ends, or take the task from it: `perdure take {quote(task_id)}`. "
            "A holder that died on this host is noticed at once, one that is silent after a whole lease (5 s)",
        )


class LeaseLost(Conflict):
    """This attempt may no longer write; what it tried to write was not written."""

    def __init__(self, task_id: str, why: str) -> None:
        self.task_id, self.why = task_id, why
        super().__init__(
            f"the attempt on task {task_id!r} has lost its lease: {why}",
            kept="all that was acknowledged before; this write changed nothing",
            do="stop this attempt; open the task again to see where it stands",
        )


class ShellBusy(Conflict):
    """Something else is in front in a shell; what was asked for was not typed."""

    def __init__(self, unit: str, what: str) -> None:
        self.unit, self.in_front = unit, what
        super().__init__(
            f"the shell is not at its prompt: {what}",
            kept="what runs there, and what is on its line; nothing was typed",
            do="wait for it, answer it, or stop it with signal(); another shell is free at once",
        )


class UnitHeld(Conflict):
    """Another process has the right to write to a unit; nothing was written."""

    def __init__(self, unit: str, pid: int) -> None:
        self.unit, self.pid = unit, pid
        by = f"process {pid}" if pid else "a later attempt, or a person who took it over,"
        super().__init__(
            f"{by} writes to unit {unit}",
            kept="the unit as it is; nothing was written",
            do="read from it meanwhile, or take it over: take(), `perdure attach --take`",
        )


class OutOfOrder(Conflict):
    """An item of a plan, or a step of a procedure, before one that comes first."""

    def __init__(self, item: str, waiting: str) -> None:
        self.item, self.waiting = item, waiting
        super().__init__(
            f"{item!r} comes after {waiting!r}, which is not done",
            do="do that first; or say why this goes before it, and that is on record",
        )


class DependencyCycle(Conflict):
    """Tasks that would wait for each other for ever."""

    def __init__(self, path: tuple[str, ...]) -> None:
        self.path = path
        super().__init__(f"the tasks would wait for each other: {' → '.join(path)}", do="leave one dependency out")


# ── durable functions ────────────────────────────────────────────────────────────────────────────


class ReplayDiverged(PerdureError):
    """The function asked for another call than its journal holds; nothing ran."""

    exit_code = 4

    def __init__(self, task_id: str, position: int, recorded: str, asked: str, *, do: str = "") -> None:
        self.task_id, self.position, self.recorded, self.asked = task_id, position, recorded, asked
        super().__init__(
            f"task {task_id!r} asked for {asked!r}; entry {position} of its journal is {recorded!r}",
            kept="all entries; nothing ran, the task is paused",
            do=do or "put the calls back in order, keep both ways with patched(), or publish @durable(version=2)",
        )


class StepFailed(PerdureError):
    """A step or effect raised an exception that is not builtin, declared or registered."""

    def __init__(self, type_name: str, message: str, advice: str = "") -> None:
        self.type_name, self.message = type_name, message
        advice = advice or "raises=[…] on the step brings the exception itself back"
        super().__init__(f"{type_name}: {message}", do=advice)


class EffectUncertain(PerdureError):
    """Whether an effect happened is not known; it was not run again."""

    def __init__(self, name: str, why: str) -> None:
        self.name, self.why = name, why
        super().__init__(
            f"whether {name} happened is not known: {why}",
            kept="its intent, with its key",
            do="look at the target by that key, then decide",
        )
        self.args = (name, why)  # what it is made of again when it is read from a journal

    def __reduce__(self) -> tuple[object, ...]:
        return (EffectUncertain, (self.name, self.why))


class ResultNotStorable(PerdureError):
    """An effect was done, and its result could not be kept; it is not run again."""

    def __init__(self, name: str, path: str, problem: str) -> None:
        self.name, self.path, self.problem = name, path, problem
        where = f" at {path!r}" if path else ""
        super().__init__(
            f"{name} was done, but its result cannot be stored{where}: {problem}",
            kept="that it was done, with its key; it is not run again",
            do="return data from it, and look its result up at the target by the key",
        )
        self.args = (name, path, problem)

    def __reduce__(self) -> tuple[object, ...]:
        return (ResultNotStorable, (self.name, self.path, self.problem))


class BudgetExhausted(PerdureError):
    """A task has spent what it may; the model call that asked was not made and nothing was recorded."""

    def __init__(self, task_id: str, what: str, limit: str, spent: str) -> None:
        self.task_id, self.budget, self.limit, self.spent = task_id, what, limit, spent
        super().__init__(
            f"task {task_id!r} has spent {spent} of its budget of {limit} ({what})",
            kept="all that was done and paid for; the call was not made",
            do="resume it with a larger budget: fn.options(budget=Budget(…)), or catch this and wind up",
        )
        self.args = (task_id, what, limit, spent)


class NoTask(PerdureError, RuntimeError):
    """An effect, or a pause, was called where no task could record it; it did not run."""

    exit_code = 2

    def __init__(self, name: str, *, is_effect: bool = False, where: str = "a durable function") -> None:
        self.name = name
        do = f"call it inside {where}, which app.run(…) or a worker carries out (in a thread of its own: bind(…))"
        super().__init__(
            f"{'the effect ' if is_effect else ''}{name} was called outside {where}",
            kept="it did not run",
            do=f"{do}, or {name}.plain(…) to run it without any guarantee" if is_effect else do,
        )


# ── the caller, the wait ─────────────────────────────────────────────────────────────────────────


class NotAllowed(PerdureError):
    """The caller may not do this."""

    exit_code = 5


class Rejected(PerdureError):
    """A person (`by`) said no, or nobody decided in time and no was the default (`expired`)."""

    def __init__(self, question: str, by: str, comment: str = "", *, expired: bool = False) -> None:
        self.question, self.by, self.comment, self.expired = question, by, comment, expired
        said = "nobody decided in time, so the answer is no" if expired else f"{by or 'a person'} said no"
        why = f" ({comment})" if comment else ""
        super().__init__(
            f"{said} to {question!r}{why}",
            kept="all that was done before",
            do="catch Rejected in the durable function to go another way",
        )


class RateLimited(PerdureError):
    """A provider asks for patience until `reset_at`, which is longer than the task may wait."""

    def __init__(self, provider: str, reset_at: datetime) -> None:
        self.provider, self.reset_at = provider, reset_at
        super().__init__(
            f"{provider or 'the provider'} takes no requests until {reset_at.isoformat(timespec='seconds')}",
            kept="nothing was waited for",
            do="raise max_wait, or use another provider",
        )


class KillSwitchOn(NotAllowed):
    """Somebody has stopped this task, or all tasks, from outside; the call was not made."""

    def __init__(self, task_id: str, why: str, by: str) -> None:
        self.task_id, self.why, self.by = task_id, why, by
        super().__init__(
            f"{by} has stopped task {task_id!r} by the kill switch" + (f": {why}" if why else ""),
            kept="all that was done; the call was not made",
            do=f"`perdure kill-switch off {quote(task_id)}` lets it go on; `perdure kill-switch list` shows all",
        )


class TaskFailed(PerdureError):
    """A task that was waited for has ended otherwise; `error` is what it ended with."""

    def __init__(self, task_id: str, status: str, wanted: str, error: object = None) -> None:
        self.task_id, self.status, self.wanted, self.error = task_id, status, wanted, error
        super().__init__(
            f"task {task_id!r} {'was' if status == 'cancelled' else 'has'} {status}; {wanted} was waited for",
            kept="its record, with its error and its last state",
            do=f"`perdure show {quote(task_id)}` tells why"
            + (f"; `perdure resume {quote(task_id)}` begins a new attempt" if status == "failed" else ""),
        )


class TimedOut(PerdureError, TimeoutError):
    """What was waited for did not come in time; the task itself goes on."""

    exit_code = 6


# ── saving and restoring what lives ──────────────────────────────────────────────────────────────


class CutFailed(PerdureError):
    """A folder could not be cut."""

    def __init__(self, folder: str, problem: str, *, do: str = "free some space, or mend what is named, and cut again"):
        self.folder, self.problem = folder, problem
        super().__init__(
            f"{folder} could not be cut: {problem}", kept="the folder as it is, and every earlier cut", do=do
        )


class Incompatible(PerdureError):
    """The world is not as it was at the checkpoint; `changed` names the fingerprints that differ."""

    exit_code = 4

    def __init__(self, checkpoint: str, changed: Sequence[tuple[str, str]]) -> None:
        self.checkpoint, self.changed = checkpoint, tuple(changed)
        told = "; ".join(f"{name}: {why}" for name, why in self.changed)
        super().__init__(
            f"checkpoint {checkpoint} does not fit the world any more: {told}",
            kept="everything; nothing was started or touched",
            do="bring the world back, or choose another policy for that fingerprint (warn, rebuild, continue)",
        )


class RestoreFailed(PerdureError):
    """A unit could not be brought back; those before it were undone. `leftovers` names what could not be undone."""

    def __init__(self, unit: str, problem: str, leftovers: Sequence[str] = ()) -> None:
        self.unit, self.problem, self.leftovers = unit, problem, tuple(leftovers)
        left = f"; could not be undone: {', '.join(self.leftovers)}" if self.leftovers else ""
        super().__init__(
            f"{unit} could not be brought back: {problem}",
            kept=f"the checkpoint, and everything as it was before{left}",
            do="mend what is named and restore again; `perdure resume --plan ID` tells what would be done",
        )


class SecretMissing(PerdureError):
    """A secret is not where its reference says; the message never shows a value."""

    exit_code = 5

    def __init__(self, reference: str, problem: str) -> None:
        self.reference, self.problem = reference, problem
        super().__init__(
            f"{reference} cannot be had: {problem}",
            kept="everything else; nothing was started with an empty secret",
            do="put the secret in its place on this machine, then go on",
        )


class CredentialRefused(PerdureError):
    """No way to a credential worked; `tried` says how each was refused."""

    exit_code = 5

    def __init__(self, name: str, tried: Sequence[tuple[str, str]]) -> None:
        self.name, self.tried = name, tuple(tried)
        told = "; ".join(f"{way}: {why}" for way, why in tried) or "there is no way to renew it"
        super().__init__(
            f"no credential for {name}: {told}",
            kept="everything else; nothing was started without it",
            do="put a new credential in its place, then answer the task's question or resume it",
        )


class BundleRefused(PerdureError):
    """A bundle cannot be trusted or read; nothing of it was written."""

    exit_code = 2

    def __init__(self, bundle: str, problem: str, *, do: str = "export it again where the task came from") -> None:
        self.bundle, self.problem = bundle, problem
        super().__init__(
            f"bundle {bundle} is refused: {problem}", kept="the store as it was; nothing was written", do=do
        )


# ── live things ──────────────────────────────────────────────────────────────────────────────────


class UnitEnded(PerdureError):
    """A live thing is not there any more, or did not start; `why` says what is known."""

    def __init__(self, unit: str, why: str) -> None:
        self.unit, self.why = unit, why
        super().__init__(
            f"unit {unit or '?'}: {why}",
            kept="its record and its output; `perdure units` shows it",
            do="open it again: rebuild='auto' makes it anew from its recipe",
        )


class RequestFailed(PerdureError):
    """A kept request has no whole answer; `sent` is False if it certainly never left."""

    def __init__(self, request: str, why: str, sent: bool) -> None:
        self.request, self.why, self.sent = request, why, sent
        super().__init__(
            f"request {request!r}: {why}",
            kept="what came of its answer, to be read by offset" if sent else "nothing was sent",
            do="ask the other side what it knows of it before you send another, under another name"
            if sent
            else "make it again under another name",
        )


class KeeperUnavailable(PerdureError):
    """The keeper of live things could not be started or does not answer."""

    exit_code = 7


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────


class SessionUnavailable(PerdureError):
    """A database session could not be opened, or its process does not answer."""

    exit_code = 7

    def __init__(self, session: str, why: str, *, log: str = "") -> None:
        self.session, self.why = session, why
        super().__init__(
            f"the session {session!r} cannot be used: {why}",
            kept="what it holds, as far as it lives",
            do=f"{log} may say more" if log else "look at the address and the server, then open it again",
        )


class SessionLost(PerdureError):
    """A kept session is gone. Its verdict, when it is opened again, says what became of its transaction."""

    def __init__(self, session: str, why: str) -> None:
        self.session, self.why = session, why
        super().__init__(
            f"the session {session!r} is lost: {why}",
            kept="what was committed",
            do="open the session again: its verdict says what became of the rest",
        )


class SqlFailed(PerdureError):
    """A database refused a statement; `code` is its own name for why."""

    def __init__(self, session: str, code: str, message: str) -> None:
        self.session, self.code, self.message = session, code, message
        super().__init__(
            f"{message} ({code})",
            kept=f"the session {session!r}, and its transaction if one is open",
            do="change the statement, or roll back",
        )
        self.args = (session, code, message)

    def __reduce__(self) -> tuple[object, ...]:
        return (SqlFailed, (self.session, self.code, self.message))


class TransactionLost(PerdureError):
    """A transaction that was open in an earlier attempt is not there any more."""

    def __init__(self, session: str, why: str, is_uncertain: bool = False) -> None:
        """`is_uncertain`: it may have been committed."""
        self.session, self.why, self.is_uncertain = session, why, is_uncertain
        super().__init__(
            f"a transaction of the session {session!r} is over: {why}",
            kept="what was committed before it; nothing was run again"
            if is_uncertain
            else "what was committed before it",
            do="look at the data whether it is there, before any of it is done again"
            if is_uncertain
            else "begin the transaction anew, in a new attempt or a block of its own",
        )
        self.args = (session, why, is_uncertain)  # what it is made of again when it is read from a journal

    def __reduce__(self) -> tuple[object, ...]:
        return (TransactionLost, (self.session, self.why, self.is_uncertain))


class StatementUnanswered(PerdureError):
    """A statement of a durable function cannot be answered from what was kept, and is not repeated."""

    def __init__(self, session: str, statement: str, why: str) -> None:
        self.session, self.statement, self.why = session, statement, why
        super().__init__(
            f"{statement[:80]!r} in the session {session!r}: {why}",
            kept="what was done in the session; the statement was not run again",
            do="read large results in a step that returns less; roll the session's transaction back and resume the "
            "task, and the block is run again from its beginning",
        )
        self.args = (session, statement, why)

    def __reduce__(self) -> tuple[object, ...]:
        return (StatementUnanswered, (self.session, self.statement, self.why))


# ── bytes that cannot be read ────────────────────────────────────────────────────────────────────


class KeyMissing(PerdureError):
    """A record is sealed, and its key is not here."""

    exit_code = 7

    def __init__(self, key_id: str) -> None:
        self.key_id = key_id
        super().__init__(
            f"the record is sealed with key {key_id!r}, which is not here",
            kept="the record, unread and unchanged",
            do="give the key by PERDURE_KEY, a key file or the keyring; `perdure keys list` names those in use",
        )


class RecordDamaged(PerdureError):
    """A record's bytes are not what was written; `what` says which and how it was noticed."""

    exit_code = 7

    def __init__(
        self,
        record: str,
        problem: str,
        *,
        kept: str = "the record is left as it is, for inspection",
        do: str = "`perdure doctor` names the damaged records; the newest good checkpoint is used instead",
    ) -> None:
        self.record, self.problem = record, problem
        super().__init__(f"{record} is damaged: {problem}", kept=kept, do=do)


class JournalDamaged(RecordDamaged):
    """An entry of a task's journal cannot be read, so its function cannot go on from it; a fork before it can."""

    def __init__(self, task_id: str, position: int, problem: str) -> None:
        self.task_id, self.position = task_id, position
        super().__init__(
            f"entry {position} of the journal of task {task_id!r}",
            problem,
            kept="all other entries; nothing was run",
            do=f"`perdure fork {quote(task_id)} NEW --at {position - 1}` keeps what was done before it, and settles "
            "the effects that were begun since; or restore the store from a backup",
        )


# ── the store ────────────────────────────────────────────────────────────────────────────────────


class StoreUnavailable(PerdureError):
    """The store could not be used."""

    exit_code = 7


class StoreUnreachable(StoreUnavailable):
    """No connection; a write under way may or may not be in: read before trying again."""


class StoreFull(StoreUnavailable):
    """No space left; earlier data is intact and writing works again when there is space."""


class StoreBusy(StoreUnavailable):
    """Another process held the store for longer than we wait."""


class StoreDamaged(StoreUnavailable):
    """The database itself reports that it is broken."""


class StoreNewer(StoreUnavailable):
    """The store was made by a newer perdure, and is left untouched."""


class StoreRefused(StoreUnavailable):
    """This place, or this SQLite, would lose data; or the store that was found belongs to another user."""


class StoreForked(StoreUnavailable):
    """The store was opened before os.fork() and used in the child."""

    def __init__(self) -> None:
        super().__init__(
            "this store was opened before os.fork() and cannot be used in the child",
            kept="the parent's store works on, untouched",
            do="open a new Perdure() in the child process",
        )


class StoreClosed(StoreUnavailable):
    """close() was called."""

    def __init__(self) -> None:
        super().__init__("this store is closed", kept="all that was acknowledged", do="open a new Perdure()")
