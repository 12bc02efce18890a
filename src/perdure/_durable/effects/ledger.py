"""The effects of a task: each with its key, how often it was tried, and how it ended.

    done        it happened, and its result is on record
    failed      it definitely did not happen, or a person said so
    uncertain   it may have happened; its outcome is not known yet
    undone      it happened, and was taken back

The ledger is the journal, read for its effects. Pure, but for the reading.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from datetime import datetime
from hashlib import blake2b
from typing import Any, Literal

from msgspec import Struct

from perdure._durable.attempt import Call
from perdure._durable.journal import failure_in, least_length, read_answers, read_readable
from perdure._ground.clock import moment
from perdure._ground.encoding import codec
from perdure._ground.exception_text import without_breaks
from perdure._ground.secrets.known_secrets import redact
from perdure._model import Entry, name_of, path_of
from perdure._replay import SPELLED, call_of
from perdure._store import Store

State = Literal["done", "failed", "uncertain", "undone"]
UNDO = "undo"


class EffectRecord(Struct, frozen=True, kw_only=True):
    """One effect of a task, in its present state."""

    name: str
    call: str  # with its arguments, as a person reads it
    state: State
    key: str
    tries: int
    began_at: datetime
    ended_at: datetime | None
    undone_at: datetime | None
    settled: str  # by what, if its outcome was not known at first: verify, person
    error: str
    traceback: str = ""  # where that was raised; "" of one that was recorded before tracebacks were kept
    has_undo: bool
    is_inherited: bool  # done by the task that this one was forked from
    digest: str  # of its arguments
    path: str
    line: int


def shown_of(intent: Entry) -> str:
    """The call as a person reads it: as its intent says, or as its digest does, which spells a short one."""
    said = (intent.note or {}).get("shown")
    if not said:
        said = call_of(intent) if intent.digest[:1] == SPELLED else name_of(intent.path)
    return without_breaks(redact(str(said)))


class Account(Struct):
    """An effect as its entries tell it."""

    path: str
    began_at: int
    intent: Entry
    end: Entry | None = None
    newest: Entry | None = None  # of its intents: it says how the try before ended
    position: int = 0  # of its outcome: the order in which it is undone
    state: State = "uncertain"
    answer: Mapping[str, Any] | None = None  # what a person said later, when the code had gone on
    undo_intent: Entry | None = None
    undo_end: Entry | None = None

    @property
    def note(self) -> Mapping[str, Any]:
        return (self.end.note if self.end is not None and self.end.note else None) or self.intent.note or {}

    @property
    def name(self) -> str:
        return name_of(self.path)

    @property
    def key(self) -> str:
        return str(self.note.get("key", ""))

    @property
    def shown(self) -> str:
        return shown_of(self.intent)

    @property
    def is_inherited(self) -> bool:
        """True if the source of this fork did the effect: undoing it is up to the source."""
        return "from" in (self.intent.note or {})

    @property
    def has_undo(self) -> bool:
        return not self.is_inherited and (self.intent.note or {}).get("undo") is not None

    def refresh(self, ended: tuple[int, Entry] | None) -> None:
        """It has ended just now."""
        if ended is not None:
            self.position, self.end = ended
            self.state = _state(self.end, is_open=bool((self.end.note or {}).get("open", self.end.kind == "cut")))

    def result(self, call: Call) -> Any:
        """What it returned; raises what it raised."""
        if self.answer is not None:
            return codec.decode(codec.encode(self.answer.get("value")), call.signature.returns)
        assert self.end is not None
        return call.read(self.end)


def accounts(entries: Iterable[tuple[int, Entry]], answers: Mapping[str, Any]) -> list[Account]:
    """The effects of a journal, in the order they began; `answers` are what persons said, by question, None while it
    is open."""
    found: dict[str, Account] = {}
    undos: dict[str, tuple[Entry | None, Entry | None]] = {}
    for position, entry in entries:
        op = entry.op.partition(".")[0]
        if op == UNDO:
            before = undos.get(entry.path, (None, None))
            undos[entry.path] = (entry, None) if entry.kind == "intent" else (before[0], entry)
        elif op == "effect":
            _read(found, position, entry)
    for account in found.values():
        account.undo_intent, account.undo_end = undos.get(undo_path(account.path), (None, None))
        _hear(account, answers)
        if account.state == "done" and account.undo_end is not None and account.undo_end.error is None:
            account.state = "undone"
    return list(found.values())


def not_known_to(kept: Iterable[tuple[int, Entry]], found: Iterable[Account]) -> list[Account]:
    """Those of these effects that have another state than the kept entries say, or that these do not tell of."""
    known = {(one.path, one.key): one.state for one in accounts(kept, {})}
    return [one for one in found if known.get((one.path, one.key)) != one.state]


def undo_path(path: str) -> str:
    return path_of(path, UNDO, 1)


def _read(found: dict[str, Account], position: int, entry: Entry) -> None:
    account = found.get(entry.path)
    note = entry.note or {}
    if entry.kind == "intent":
        if account is None:
            account = found[entry.path] = Account(entry.path, entry.at, entry, position=position)
        account.newest = entry
        waits = "until" in note  # it definitely failed, and will be tried again
        account.state = "failed" if waits else "uncertain"
        if not waits:
            account.intent, account.end, account.position = entry, None, position
        return
    if account is None:  # a journal that was cut off by an older version
        account = found[entry.path] = Account(entry.path, entry.at, entry)
    if entry.kind == "cut" and account.end is not None:
        return  # it had ended; only the code never heard of it
    account.end, account.position = entry, position
    account.state = _state(entry, is_open=bool(note.get("open", entry.kind == "cut")))


def _state(entry: Entry, *, is_open: bool) -> State:
    if is_open:
        return "uncertain"
    if entry.kind == "cut":
        return "failed"
    return "done" if entry.error is None or failure_in(entry).type == "ResultNotStorable" else "failed"


def _hear(account: Account, answers: Mapping[str, Any]) -> None:
    """Take over a person's decision that no attempt has recorded yet, or never will, because the code has moved past
    it."""
    if account.state == "uncertain":
        place = f"{account.path}?{account.note.get('tries', 1)}"
        answer = answers.get(place)
        for again in itertools.count(1):  # a value that did not fit was asked for again
            if f"{place}.{again}" not in answers:
                break
            answer = answers[f"{place}.{again}"]
        if isinstance(answer, Mapping) and answer.get("choice") in ("done", "fail"):
            account.answer = answer
            account.state = "done" if answer["choice"] == "done" else "failed"


def record_of(account: Account, line: int) -> EffectRecord:
    failure = failure_in(account.end if account.end is not None else account.newest)
    note, undone = account.note, account.undo_end if account.state == "undone" else None
    settled = "person" if account.answer is not None else str(note.get("settled") or "")
    return EffectRecord(
        name=account.name,
        call=account.shown,
        state=account.state,
        key=account.key,
        tries=int(note.get("tries") or 1),
        began_at=moment(account.began_at),
        ended_at=moment(account.end.at) if account.end is not None and account.state != "uncertain" else None,
        undone_at=moment(undone.at) if undone is not None else None,
        settled=settled,
        error=str(failure),
        traceback=failure.traceback,
        has_undo=account.has_undo,
        is_inherited=account.is_inherited,
        digest=_fingerprint(account.intent.digest),
        path=account.path,
        line=line,
    )


def _fingerprint(digest: bytes) -> str:
    """Fingerprint of the arguments. The digest of a short call spells them out, and is not shown in hex."""
    return digest.hex() if digest[:1] != SPELLED else blake2b(digest, digest_size=16).hexdigest()


# ── reading ──────────────────────────────────────────────────────────────────────────────────────


async def read_ledger(store: Store, uid: str, lines: int) -> list[EffectRecord]:
    """Every effect of a task, including those of lines it has left."""
    answers = await read_answers(store, uid)
    await least_length(store, uid, lines)  # a damaged number of lines must not bound the search
    found: dict[object, EffectRecord] = {}
    for line in range(1, lines + 1):
        entries = (await read_readable(store, uid, line)).entries
        said = answers if line == lines else _said_of(line, answers)
        for account in accounts(entries, said):
            record = record_of(account, line)
            # A rollback copies what stays done to its new line: one effect, as the newest line tells it.
            found[record.key or (line, record.path)] = record
    return list(found.values())


def _said_of(line: int, answers: Mapping[str, Any]) -> dict[str, Any]:
    """The answers to questions of a line that the task has left."""
    left = f"~{line}~"
    return {path.removeprefix(left): answer for path, answer in answers.items() if path.startswith(left)}
