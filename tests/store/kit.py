"""Verbs as their callers send them, and the whole of a store as one value to compare.

`Hand` is a process at the store: it sends verbs with plain defaults and remembers nothing. `dump` reads
everything a store holds about the tasks, ids and processes that tests use, through the engine's own
queries.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from perdure._store import Engine, FrameRow, HolderRow, Row, TaskRow, Write

# All that tests may name. Uids rise with time, so the order of these is the order of their creation.
UIDS = tuple(f"u{number:03d}" for number in range(8))
IDS = ("alpha", "beta", "gamma")
NAMESPACES = ("main", "other")
WORKERS = ("w1", "w2", "w3")
OWNERS = ("o1", "o2")
SCOPES = ("queue mail", "key é")
QUEUES, FUNCTIONS = ("default", "slow"), ("greet", "order")
KINDS, KEYS, HANDLERS = ("schedule", "frames"), ("a", "é"), ("mail", "log")
HOOKS, MESSAGES = ("hook_a", "hook_b"), ("msg_1", "msg_2", "msg_3")
PATHS, TOPICS = ("1", "2/1", "10"), ("news", "é", "~task beta", "~poll")
MEMORY_KEYS = ("a", "a/1", "b/é")
FINISHED = ("completed", "failed", "cancelled")

NO_FRAME: dict[str, Any] = {
    "adds": 0,
    "base": None,
    "parent": None,
    "size": 0,
    "stored": 0,
    "chain_size": 0,
    "chain_length": 0,
    "chunks": 0,
    "frame": None,
    "label": "",
    "cause": "",
    "depth": 0,
    "position": 0,
}
_NO_COLUMNS = dict.fromkeys(("pause", "pause_reason", "due_at", "result", "error", "version", "epoch", "worker"))
# One row per verb of a user: from where, to where.
MOVES = {
    "pause": ("pending,running", "paused"),
    "resume": ("failed,paused", "running"),
    "complete": ("running", "completed"),
    "fail": ("paused,pending,running", "failed"),
    "cancel": ("failed,paused,pending,running", "cancelled"),
    "leave": ("failed,paused,pending,running", "cancelled"),
    "remind": ("paused", "paused"),
}


def event(kind: str, at: int) -> dict[str, Any]:
    body = f"{kind} {at}".encode()
    return {
        "at": at,
        "kind": kind,
        "author": json.dumps({"user": "ada"}),
        "body": body,
        "digest": hashlib.sha256(body).digest(),
    }


def frame(parent: int, *, content: bytes = b"state", base: int | None = None, **more: Any) -> dict[str, Any]:
    """The columns of a checkpoint; with `base` it is a delta of that one."""
    columns = {"parent": parent, "base": base, "size": len(content) * 2, "stored": len(content), "frame": content}
    chain = {"chain_size": len(content), "chain_length": 1} if base is not None else {}
    return {**NO_FRAME, **columns, **chain, "adds": 1, "cause": "explicit", **more}


def write(verb: str, params: dict[str, Any], **more: Any) -> Write:
    """A write that no committer has in hand."""
    return Write(None, verb, params, **{"key": "main\0alpha", **more})  # type: ignore[arg-type]


def commit_all(engine: Engine, writes: Sequence[Write]) -> list[Row | None]:
    """Send writes until all are in, as the committer does: an engine may take only the first few."""
    rows: list[Row | None] = []
    while len(rows) < len(writes):
        answered = engine.commit(writes[len(rows) :])
        assert answered
        rows += [None if row is None else tuple(row) for row in answered]
    return rows


class Hand:
    """One process at a store: each method sends one verb and answers its row, or None when it was refused."""

    def __init__(self, engine: Engine, worker: str = "w1") -> None:
        self.engine, self.worker = engine, worker
        self._clock = itertools.count(1_000)

    def do(self, verb: str, **params: Any) -> Row | None:
        (row,) = commit_all(self.engine, [write(verb, params)])
        return row

    def event(self, kind: str) -> dict[str, Any]:
        return event(kind, next(self._clock))

    # ── processes and leases ────────────────────────────────────────────────────────────────────

    def register(self, **over: Any) -> Row | None:
        me = {"host": "here", "boot_id": "boot", "pid_ns": "ns", "pid": 7, "pid_start": 70, "user": "ada"}
        return self.do("register_worker", **{"worker": self.worker, **me, "lease_ms": 5000, "at": 1, **over})

    def claim(self, uid: str, *, before: str = "running", **over: Any) -> Row | None:
        """Take the lease as it stands now, whoever has it."""
        holder = self.holder(uid)
        seen = {"seen_epoch": holder.epoch, "seen_worker": holder.worker} if holder else {}
        who = {"worker": self.worker, "host": "here", "pid": 7, "user": "ada", "agent": "agent"}
        what = {**self.event("attempt started"), **seen, **who, "before": before, "former": "superseded", **over}
        return self.do("claim", uid=uid, **what)

    def claim_free(self, uid: str, **over: Any) -> Row | None:
        """Take the lease as it stands now, if nobody has it."""
        holder = self.holder(uid)
        who = {"worker": self.worker, "host": "here", "pid": 7, "user": "ada"}
        seen = {"seen_epoch": holder.epoch if holder else 0}
        return self.do("claim_free", uid=uid, **{**self.event("attempt started"), **seen, **who, **over})

    def release(self, uid: str, epoch: int, **over: Any) -> Row | None:
        ours = {"epoch": epoch, "worker": self.worker, "ended": "released"}
        return self.do("release", uid=uid, **{**self.event("attempt ended"), **ours, **over})

    # ── tasks ───────────────────────────────────────────────────────────────────────────────────

    def create(self, uid: str, id: str = "alpha", **over: Any) -> Row | None:
        return self.do("create_task", uid=uid, **self._new(id, **over))

    def restart(self, old: str, uid: str, id: str = "alpha", **over: Any) -> Row | None:
        return self.do("restart_task", uid=uid, **self._new(id, old=old, **over))

    def _new(self, id: str, **over: Any) -> dict[str, Any]:
        texts = {"name": "Name", "description": "What it is for", "agent": "agent", "tags": "{}", "depends_on": "[]"}
        who = {"namespace": "main", "id": id, "status": "running", "config": None, "old": None}
        return {**self.event("created"), **frame(0), "cause": "created", **texts, **who, **over}

    def checkpoint(self, uid: str, epoch: int, parent: int, **over: Any) -> Row | None:
        ours = {"epoch": epoch, "worker": self.worker}
        return self.do("checkpoint", uid=uid, **{**self.event("checkpoint"), **frame(parent), **ours, **over})

    def progress(self, uid: str, epoch: int, progress: bytes = b"half", **over: Any) -> Row | None:
        ours = {"epoch": epoch, "worker": self.worker, "at": next(self._clock)}
        return self.do("mark_progress", uid=uid, progress=progress, **{**ours, **over})

    def append(self, uid: str, epoch: int, position: int, *, line: int = 1, **over: Any) -> Row | None:
        return self.do("append_entry", **self.entry(uid, epoch, position, line=line, **over))

    def entry(self, uid: str, epoch: int, position: int, *, line: int = 1, **over: Any) -> dict[str, Any]:
        ours = {"uid": uid, "epoch": epoch, "worker": self.worker, "line": line, "position": position}
        return {**ours, "entry": f"entry {line}.{position}".encode(), **over}

    def move(self, uid: str, verb: str, *, epoch: int | None = None, **over: Any) -> Row | None:
        befores, after = MOVES[verb]
        happened = self.event(verb)
        is_end = after in FINISHED
        ours = {"epoch": epoch, "worker": self.worker if epoch is not None else None}
        what = {
            "after": after,
            "befores": befores,
            "finished_at": happened["at"] if is_end else None,
            "ends": int(is_end or epoch is not None),
            "ended": verb,
        }
        return self.do("move_task", uid=uid, **{**_NO_COLUMNS, **NO_FRAME, **happened, **what, **ours, **over})

    def rollback(self, uid: str, target: int, version: int | None = None, **over: Any) -> Row | None:
        what = {
            "target": target,
            "version": self.task(uid).version if version is None else version,
            "befores": "failed,paused,pending,running",
            "after": None,
            "seen": None,
        }
        return self.do(
            "rollback", uid=uid, **{"entries": "[]", **NO_FRAME, **self.event("rolled back"), **what, **over}
        )

    def invalidate(self, uid: str, seqs: list[int], target: int, version: int | None = None) -> Row | None:
        version = self.task(uid).version if version is None else version
        what = {"target": target, "seqs": json.dumps(seqs), "version": version}
        return self.do("invalidate", uid=uid, **self.event("invalidated"), **what)

    def archive(self, uid: str, archived_at: int | None = 99) -> Row | None:
        return self.do("archive", uid=uid, archived_at=archived_at, **self.event("archived"))

    def delete(self, uid: str, version: int | None = None) -> Row | None:
        version = self.task(uid).version if version is None else version
        return self.do("delete_task", uid=uid, version=version, **self.event("deleted"))

    def ask(self, uid: str, epoch: int, path: str = "1", topic: str | None = None, **over: Any) -> Row | None:
        ours = {"epoch": epoch, "worker": self.worker, "at": next(self._clock), "due_at": None, "expires_at": None}
        what = {"path": path, "reason": "human_input", "topic": topic, "question": b"why?"}
        return self.do("open_pause", uid=uid, **{**ours, **what, **over})

    def answer(self, uid: str, path: str = "1", answer: bytes = b"yes", line: int | None = None) -> Row | None:
        return self.do("answer_pause", uid=uid, path=path, line=line, answer=answer, **self.event("answered"))

    def signal(self, uid: str, name: str, value: bytes = b"hello", once: str | None = None) -> Row | None:
        return self.do("send_signal", uid=uid, name=name, value=value, once=once, **self.event("signal"))

    def suspend(self, uid: str, epoch: int, *paths: str) -> Row | None:
        columns = {"pause": b"pause", "pause_reason": "human_input", "due_at": None, "paths": json.dumps(paths)}
        return self.do("suspend", uid=uid, epoch=epoch, worker=self.worker, **columns, **self.event("paused"))

    def begin_line(self, uid: str, epoch: int) -> Row | None:
        ours = {"epoch": epoch, "worker": self.worker, "function_version": 2, "arguments": b"new", "entries": "[]"}
        return self.do("begin_line", uid=uid, **ours, **self.event("upgraded"))

    def remember(self, key: str = "a", value: bytes = b"value", **over: Any) -> Row | None:
        what = {"namespace": "main", "owner": "", "at": next(self._clock), "expires_at": None, "seen": None}
        what |= {"epoch": None, "worker": None, "uid": ""}
        return self.do("put_memory", **{**what, "key": key, "value": value, **over})

    def remember_all(self, rows: Sequence[dict[str, Any]], **over: Any) -> Row | None:
        """Rows of key, value (None to forget it), seen, expires_at and owner; all but the key may be missing."""
        told, contents = [], b""
        for n, row in enumerate(rows):
            value = row.get("value")
            place = {"n": n, "start": len(contents) + 1, "size": None if value is None else len(value)}
            told.append({"owner": "", "seen": None, "expires_at": None, **row, **place, "value": None})
            contents += value or b""
        what = {"namespace": "main", "at": next(self._clock), "epoch": None, "worker": None, "uid": ""}
        return self.do("write_memory", **{**what, "rows": json.dumps(told), "contents": contents, **over})

    def remember_on_record(self, uid: str, epoch: int, position: int, key: str = "a", **over: Any) -> Row | None:
        what = {"namespace": "main", "owner": "", "at": next(self._clock), "expires_at": None, "seen": None}
        what |= {"epoch": epoch, "worker": self.worker, "uid": uid, "line": 1, "position": position}
        what |= {"entry": b"kept", "refused": b"refused", "key": key, "value": b"value"}
        return self.do("record_memory", **{**what, **over})

    def forget(self, key: str = "a", before: int | None = None) -> Row | None:
        return self.do("drop_memory", namespace="main", key=key, before=before)

    # ── keeping house ───────────────────────────────────────────────────────────────────────────

    def pin(self, uid: str, target: int, pinned: bool = True) -> Row | None:
        return self.do("pin", uid=uid, target=target, pinned=int(pinned))

    def rebase(self, uid: str, target: int, content: bytes = b"whole", chunks: int = 0) -> Row | None:
        return self.do("rebase", uid=uid, target=target, frame=content, stored=len(content), chunks=chunks)

    def prune(self, uid: str, target: int, owner: str = "") -> Row | None:
        return self.do("prune", uid=uid, target=target, owner=owner)

    def chunk(self, uid: str, owner: str, n: int, body: bytes = b"part") -> Row | None:
        return self.do("put_chunk", uid=uid, owner=owner, n=n, chunk_body=body)

    # ── looking ─────────────────────────────────────────────────────────────────────────────────

    def task(self, uid: str) -> TaskRow:
        return TaskRow(*self.engine.query("get_task_by_uid", {"uid": uid})[0])

    def holder(self, uid: str) -> HolderRow | None:
        rows = self.engine.query("read_holder", {"uid": uid})
        return HolderRow(*rows[0]) if rows else None

    def frames(self, uid: str) -> dict[int, FrameRow]:
        rows = self.engine.query("read_checkpoints", {"uid": uid, "after": -1, "limit": 1 << 31})
        return {row[0]: FrameRow(*row) for row in rows}

    def journal(self, uid: str, line: int = 1) -> list[Row]:
        return self.engine.query("read_journal", {"uid": uid, "line": line})

    def running(self, uid: str = UIDS[0], id: str = "alpha") -> int:
        """A task this process works on; the epoch it has it with."""
        assert self.register() and self.create(uid, id)
        row = self.claim(uid)
        assert row is not None
        return int(row[0])


def at_once(hands: Sequence[Hand], act: Callable[[Hand], Row | None]) -> list[Row | None]:
    """What each process is answered when all of them act at the same moment, in a thread each."""
    start = threading.Barrier(len(hands))

    def wait_and_act(hand: Hand) -> Row | None:
        start.wait()
        return act(hand)

    with ThreadPoolExecutor(len(hands)) as threads:
        return list(threads.map(wait_and_act, hands))


def listing(**over: Any) -> dict[str, Any]:
    """The parameters of list_tasks, all of them open."""
    names = ("cursor", "status", "reason", "agent", "since")
    return {"namespace": "main", "tags": "{}", "archived": 1, "limit": 1000, **dict.fromkeys(names), **over}


@contextmanager
def unchanged(engine: Engine) -> Iterator[None]:
    """What is done inside must leave every row of the store as it was."""
    before = dump(engine)
    yield
    assert dump(engine) == before


# Where a uid stands first: tasks that are there, that were deleted, and that left or sent ahead some chunks.
_WITH_UIDS = (": all", ": tombstones", "orphans")


def dump(engine: Engine) -> dict[str, Any]:
    """Everything in the store, as one value: two stores with equal dumps answer every query alike."""
    read = engine.query
    whole: dict[str, Any] = {"workers": read("read_workers", {}), "held": read("read_held", {})}
    whole["orphans"] = read("read_orphans", {"before": "~"})
    whole["slots"] = read("read_slots", {"scopes": json.dumps(SCOPES)})
    whole |= {f"held by {worker}": read("read_holding", {"worker": worker}) for worker in WORKERS}
    for namespace in NAMESPACES:
        here = {"namespace": namespace}
        whole[f"{namespace}: tombstones"] = read("read_tombstones", here)
        whole[f"{namespace}: list"] = read("list_tasks", listing(namespace=namespace))
        whole[f"{namespace}: all"] = read("list_all", {**here, "after": "", "limit": 1000})
        whole[f"{namespace}: questions"] = read("list_questions", {**here, "limit": 1000})
        place = {"expires": -1, "asked": 0, "uid": "", "path": "", "only": None, "limit": 1000}
        kinds = {"kinds": "approval input effect", "reasons": "human_approval human_input"}
        for name in ("inbox_questions", "inbox_tasks"):
            whole[f"{namespace}: {name}"] = read(name, {**here, **place, **kinds})
        whole[f"{namespace}: counted"] = sorted(read("count_inbox", here))
        whole[f"{namespace}: children"] = sorted(read("read_children", here))
        for name in ("due_pauses", "due_tasks", "due_after_tasks"):
            for polls in (0, 1) if name != "due_after_tasks" else (0,):
                whole[f"{namespace}: {name} {polls}"] = read(name, {**here, "limit": 1000, "polls": polls})
        whole[f"{namespace}: limits"] = read("read_rate_limits", here)
        functions = {"queues": json.dumps(QUEUES), "functions": json.dumps([f"{FUNCTIONS[0]} 1"]), "now": 1_020}
        functions |= {"upgrading": json.dumps(FUNCTIONS[1:]), "limit": 1000}
        whole[f"{namespace}: overdue"] = read("find_overdue", {**here, "since": 1_005, "limit": 1000})
        whole[f"{namespace}: switches"] = read("read_switches", here)
        some = {"uids": json.dumps(UIDS)}
        whole[f"{namespace}: signalled"] = read("find_signalled", {**some, "signal": TOPICS[0]})
        whole[f"{namespace}: paused"] = read("find_paused", some)
        whole[f"{namespace}: waits outside"] = read("outside_waits", {**here, "after": UIDS[0], "limit": 1000})
        whole[f"{namespace}: ended"] = read("find_ended", {**here, "ids": json.dumps(["alpha", "beta", "gamma"])})
        for name in ("tasks_of", "calls_of", "journals_of", "pauses_of", "signals_of"):
            whole[f"{namespace}: {name}"] = read(name, {**some, "limit": 1000})
        whole[f"{namespace}: summaries"] = read("summaries_of", {**here, **some})
        whole[f"{namespace}: live"] = read("find_live", some)
        whole[f"{namespace}: queue heads"] = read("queue_heads", {**here, "now": functions["now"], "limit": 10})
        whole[f"{namespace}: claimable"] = read("find_claimable", {**here, **functions})
        whole[f"{namespace}: expired memory"] = read("expired_memory", {**here, "before": 5_000, "limit": 1000})
        for settled in (0, 1):
            asked = {**here, "after": "", "limit": 1000, "settled": settled}
            whole[f"{namespace}: blocked {settled}"] = read("read_blocked", asked)
        for handler in HANDLERS:
            asked = {**here, "handler": handler, "since": 0, "ended_since": 1_010, "limit": 1000}
            whole[f"{namespace}: {handler} has not had"] = read("read_undelivered", asked)
        whole[f"{namespace}: webhooks"] = read("list_webhooks", here)
        for hook in HOOKS:
            asked = {**here, "webhook": hook, "before": "~", "limit": 1000}
            whole[f"{namespace}: due for {hook}"] = read("due_deliveries", {**asked, "by": 1_020})
            for state in ("", "due", "delivered"):
                whole[f"{namespace}: {state} for {hook}"] = read("list_deliveries", {**asked, "state": state})
        for message in MESSAGES:
            whole[f"{namespace}: {message}"] = read("get_delivery", {**here, "id": message})
        asked = {**here, "handler": HANDLERS[0], "since": 1_005, "limit": 1000}
        whole[f"{namespace}: changed and not told"] = read("changed_undelivered", asked)
        for id in IDS:
            whole[f"{namespace}/{id}: current"] = read("get_task", {**here, "id": id})
            whole[f"{namespace}/{id}: history"] = read("get_history", {**here, "id": id})
        for life in ("", *UIDS):
            listed = {**here, "life": life, "first": "", "below": "b0", "limit": 2}
            whole[f"{namespace}: memory of {life}"] = read("list_memory", {**listed, "below": None, "limit": 1000})
            whole[f"{namespace}: two of memory of {life}"] = read("list_memory", listed)
            for key in MEMORY_KEYS:
                whole[f"{namespace}: {key} of {life}"] = read("get_memory", {**here, "life": life, "key": key})
    whole |= {f"main: {name}": rows for name, rows in _dump_task(engine, "namespace:main").items()}
    for uid in sorted({str(row[0]) for name in list(whole) if name.endswith(_WITH_UIDS) for row in whole[name]}):
        whole |= {f"{uid}: {name}": rows for name, rows in _dump_task(engine, uid).items()}
    return {name: [tuple(row) for row in rows] for name, rows in whole.items() if rows}


def _dump_task(engine: Engine, uid: str) -> dict[str, list[Row]]:
    def read(name: str, **params: Any) -> list[Row]:
        return engine.query(name, {"uid": uid, **params})

    simple = {"task": "get_task_by_uid", "holder": "read_holder", "attempts": "read_attempts", "call": "get_call"}
    simple["children"] = "children_of"
    simple |= {"pauses": "read_pauses", "signals": "read_signals", "outline": "read_outline", "sealed": "sealed_call"}
    found = {name: read(query) for name, query in simple.items()}
    for kind in KINDS:
        found[f"{kind} values"] = read("list_values", kind=kind, after="", limit=1000)
        found[f"{kind} due"] = read("due_values", kind=kind, by=1_020, limit=1000)
        found[f"{kind} a"] = read("get_value", kind=kind, key="a")
    found["events"] = read("read_events", after=-1, limit=1 << 31)
    found["checkpoints"] = read("read_checkpoints", after=-1, limit=1 << 31)
    for seq in [FrameRow(*row).seq for row in found["checkpoints"]]:
        found[f"chain {seq}"] = read("read_chain", target=seq)
    for line in range(1, TaskRow(*found["task"][0]).line + 2 if found["task"] else 2):
        found[f"line {line}"] = read("read_journal", line=line)
    for owner in OWNERS:
        found[f"chunks {owner}"] = read("read_chunks", owner=owner)
    return found


def heads(engine: Engine) -> dict[str, list[Row]]:
    """The beginnings of all that is sealed, as key rotation walks through them."""
    places: dict[str, dict[str, Any]] = {
        "tasks": {},
        "checkpoints": {"number": -1},
        "events": {"number": -1},
        "entries": {"line": -1, "number": -1},
        "calls": {},
        "pauses": {"path": ""},
        "signals": {"signal": "", "number": -1},
        "values": {"kind": "", "key": ""},
        "memory": {"life": "", "key": ""},
    }
    return {
        kind: [tuple(row) for row in engine.query(f"heads_of_{kind}", {"uid": "", **place, "limit": 10_000})]
        for kind, place in places.items()
    }
