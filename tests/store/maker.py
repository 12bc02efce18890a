"""Verbs at random, that fit the store as it is, or nearly.

The same ids, epochs, versions and places come up again and again, so that verbs collide and stale ones
are sent as often as good ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from perdure._store import Engine, TaskRow
from tests.store.kit import (
    FINISHED,
    FUNCTIONS,
    HANDLERS,
    HOOKS,
    IDS,
    KEYS,
    KINDS,
    MEMORY_KEYS,
    MESSAGES,
    MOVES,
    NAMESPACES,
    NO_FRAME,
    OWNERS,
    PATHS,
    QUEUES,
    SCOPES,
    TOPICS,
    UIDS,
    WORKERS,
    Hand,
    event,
    frame,
    listing,
)

STATUSES = ("pending", "running", "paused", *FINISHED)
Make = Callable[[str], dict[str, Any]]
MOVED = ("tasks", "checkpoints", "chunks", "attempts", "events", "journal", "calls", "pauses", "signals", "shelf")
MOVED += ("deliveries", "leases", "memory")
_NO_FENCE = {"epoch": None, "worker": None}
_SEALED_OF_A_TASK = ("config", "pause", "progress", "result", "error")


class Maker:
    """Makes verbs that fit the store as it is, or nearly."""

    def __init__(self, random: Random, oracle: Engine) -> None:
        self._random, self._hand = random, Hand(oracle)
        self._clock = 1_000
        self._given: set[str] = set()
        self._place = ("main", "alpha")
        self._any: list[Make] = [
            *[self.create_task, self.restart_task, self.claim, self.checkpoint, self.move_task, self.append_entry],
            *[self.rollback, self.prune, self.rebase, self.mark_progress, self.invalidate, self.release],
            *[self.put_chunk, self.pin, self.archive, self.delete_task],
            *[self.register_worker, self.beat, self.forget_worker],
            *[
                self.start_function,
                self.start_hidden,
                self.open_pause,
                self.answer_pause,
                self.send_signal,
                self.suspend,
            ],
            *[
                self.begin_line,
                self.fork_function,
                self.set_switch,
                self.drop_chunks,
                self.reseal_task,
                self.reseal_checkpoint,
                self.reseal_event,
                self.reseal_entry,
            ],
            *[self.reseal_call, self.reseal_pause, self.reseal_signal],
            *[self.rearm_pause, self.remind_pause, self.rearm_task, self.note_rate_limit],
            *[
                self.put_memory,
                self.put_memory,
                self.write_memory,
                self.record_memory,
                self.drop_memory,
                self.reseal_memory,
            ],
            *[self.announce, self.ask_worker, self.reap, self.flag_attempt, self.take_slot, self.free_slot],
            *[self.postpone, self.complete_function, self.claim_free, self.stand_down],
        ]
        self._while_held: list[Make] = [*[self.checkpoint, self.append_entry] * 4, self.mark_progress, self.move_task]
        self._while_held += [self.release, *[self.open_pause] * 3, self.answer_pause, self.send_signal, self.suspend]
        self._while_held += [self.begin_line, self.put_memory, self.write_memory, self.record_memory]
        self._while_held += [self.rearm_pause, self.remind_pause]
        self._while_held += [self.reap, self.flag_attempt, self.take_slot, self.complete_function]
        self._while_held += [self.set_switch, self.stand_down]
        self._while_free: list[Make] = [
            self.postpone,
            *[self.claim, self.claim_free] * 3,
            self.move_task,
            self.rollback,
            self.answer_pause,
            self.send_signal,
            *[self.rearm_task, self.remind_pause, self.rearm_pause, self.stand_down],
        ]
        self._when_finished = [self.move_task, self.restart_task, self.archive, self.delete_task, self.rollback]
        self._house: list[Make] = [self.prune, self.rebase, self.pin, self.rollback, self.invalidate, self.claim]
        self._house += [*[self.drop_chunks] * 3, self.reseal_task, self.reseal_checkpoint, self.reseal_event]
        self._house += [self.reseal_entry, self.reseal_call, self.reseal_pause, self.reseal_signal]
        self._house += [self.put_memory, self.put_memory, self.write_memory, self.drop_memory, self.reseal_memory]
        self._house += [*[self.prune, self.rebase, self.beat] * 2, self.register_worker, self.forget_worker]
        self._house += [self.announce, *[self.ask_worker, self.take_slot] * 3, self.free_slot]

        self._beside: list[Make] = [*[self.add_value, self.change_value] * 2, self.drop_value, self.reseal_value]
        self._beside += [self.deliver, self.import_task, self.import_task]
        self._hooks: list[Make] = [*[self.add_webhook, self.add_delivery, self.record_delivery] * 3, self.mark_webhook]
        self._hooks += [self.change_webhook, self.drop_webhook, *[self.drop_deliveries] * 3, self.reseal_webhook]
        self._hooks += [self.reseal_delivery]

    def batch(self) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
        """A few verbs on one task for one transaction, most often one, and the key they share.

        Engines may change the order of writes with different keys, so a batch has but one.
        """
        uid = self._random.choice(self._some_task())
        rows = self._hand.engine.query("get_task_by_uid", {"uid": uid})
        self._place = rows[0][1:3] if rows else (self._random.choice(NAMESPACES), self._random.choice(IDS))
        fitting = self._fitting(uid, rows[0][4] if rows else None)
        makers = [self._random.choice(fitting) for _ in range(self._random.choice((1, 1, 1, 2, 4)))]
        return "\0".join(self._place), [(make.__name__, make(uid)) for make in makers]

    def _fitting(self, uid: str, status: str | None) -> list[Make]:
        """Verbs that may be lawful now; or, now and then, any."""
        dice = self._random.random()
        if dice < 0.09:
            return self._fitting_hooks()
        if dice < 0.16:
            return self._beside
        if dice < 0.3:
            return self._any
        if status is None:
            return [self.create_task, self.start_function, self.start_hidden, self.fork_function]
        if status in FINISHED:
            return self._when_finished
        if dice < 0.48:
            return self._house
        holder = self._hand.holder(uid)
        return self._while_held if holder is not None and holder.worker is not None else self._while_free

    def _fitting_hooks(self) -> list[Make]:
        """Verbs of webhooks: first of all there has to be one, and a message for it."""
        hooks = self._hand.engine.query("list_webhooks", {"namespace": self._place[0]})
        if not hooks:
            return [self.add_webhook]
        return [self.add_delivery] if all(hook[7] is None for hook in hooks) else self._hooks

    def _some_task(self) -> Sequence[str]:
        """Most often one of two tasks, so that verbs meet; now and then any uid."""
        if self._random.random() < 0.1:
            return UIDS
        rows = [row for name in NAMESPACES for row in self._hand.engine.query("list_tasks", listing(namespace=name))]
        return [row[0] for row in rows][:2] or UIDS[:2]

    def listing(self) -> dict[str, Any]:
        pick = self._random.choice
        tags = pick(({}, {}, {"team": "red"}, {"team": "red", "area": "é"}, {"gone": ""}))
        return listing(
            namespace=pick(NAMESPACES),
            cursor=pick((None, None, *UIDS)),
            status=pick((None, None, *STATUSES)),
            reason=pick((None, None, "rate_limit", "human_input")),
            agent=pick((None, None, "agent", "nobody")),
            since=pick((None, None, self._clock - 5)),
            archived=pick((0, 1)),
            limit=pick((1, 2, 1000)),
            tags=json.dumps(tags),
        )

    # ── numbers that are right, or just beside it ───────────────────────────────────────────────

    def _near(self, right: int) -> int:
        return right + self._random.choice((0, 0, 0, 0, 0, 0, 0, 0, -1, 1))

    def _event(self, kind: str) -> dict[str, Any]:
        self._clock += self._random.choice((0, 1, 5))
        return event(kind, self._clock)

    def _version(self, uid: str) -> int:
        rows = self._hand.engine.query("get_task_by_uid", {"uid": uid})
        return self._near(rows[0][5] if rows else 1)

    def _lawful(self, uid: str) -> Sequence[str]:
        """The moves from where a task is; the ends come up less often, as little happens after them."""
        rows = self._hand.engine.query("get_task_by_uid", {"uid": uid})
        lawful = [verb for verb, (befores, _) in MOVES.items() if rows and rows[0][4] in befores]
        return lawful + [verb for verb in lawful if verb in ("pause", "resume", "fail")] * 3 if lawful else tuple(MOVES)

    def _seqs(self, uid: str) -> tuple[int, int]:
        """The newest checkpoint's number, and the state's."""
        rows = self._hand.engine.query("get_task_by_uid", {"uid": uid})
        return (rows[0][7], rows[0][8]) if rows else (0, 0)

    def _fence(self, uid: str) -> dict[str, Any]:
        holder = self._hand.holder(uid)
        if holder is None or holder.worker is None:
            return {"epoch": self._near(holder.epoch if holder else 0), "worker": self._random.choice(WORKERS)}
        worker = holder.worker if self._random.random() < 0.9 else self._random.choice(WORKERS)
        return {"epoch": self._near(holder.epoch), "worker": worker}

    def _any_seq(self, uid: str) -> int:
        return self._random.randint(0, self._seqs(uid)[0] + 1)

    def _frame(self, uid: str) -> dict[str, Any]:
        parent = self._near(self._seqs(uid)[1])
        base = self._random.choice((None, parent, parent))
        content = self._random.choice((b"\0", b"a", b"\0\xff" * 400))
        return frame(parent, base=base, content=content, label=self._random.choice(("", "é", "done")), position=3)

    # ── the verbs ───────────────────────────────────────────────────────────────────────────────

    def register_worker(self, uid: str) -> dict[str, Any]:
        me = {"host": "here", "boot_id": "b", "pid_ns": "n", "pid": 7, "pid_start": 1 << 40, "user": "ada"}
        return {"worker": self._random.choice(WORKERS), **me, "lease_ms": 5000, "at": self._clock}

    def beat(self, uid: str) -> dict[str, Any]:
        return {"worker": self._random.choice(WORKERS)}

    def forget_worker(self, uid: str) -> dict[str, Any]:
        return {"worker": self._random.choice(WORKERS)}

    def _new(self, uid: str, kind: str) -> dict[str, Any]:
        pick = self._random.choice
        tags = pick(("{}", '{"team": "red"}', '{"area": "\\u00e9", "team": "red"}', '{"team": "blue"}'))
        texts = {"name": "é\U0001f600", "description": "", "agent": pick(("", "agent")), "tags": tags}
        rest = {
            "depends_on": pick(("[]", '["beta"]', '["gamma", "alpha"]')),
            "config": pick((None, b"\0config")),
            "cause": "created",
        }
        return {"uid": uid, **self._event(kind), **frame(0, content=b"first"), **texts, **rest}

    def create_task(self, uid: str) -> dict[str, Any]:
        uid = self._random.choice((uid, self._unused()))
        if uid in self._dead():
            uid = self._unused()
        where = {"namespace": self._place[0], "id": self._place[1], "old": None}
        return {**self._new(uid, "created"), **where, "status": self._random.choice(("running", "running", "pending"))}

    def restart_task(self, uid: str) -> dict[str, Any]:
        """The new one takes the id of the old one and a uid of its own, as its callers promise."""
        where = {"namespace": self._place[0], "id": self._place[1], "old": uid}
        return {**self._new(self._unused(), "created"), **where, "status": "running"}

    def _unused(self) -> str:
        """A uid that no task has or had; uids are never used again."""
        dead = self._dead()
        for uid in UIDS:
            if uid not in dead | self._given and not self._hand.engine.query("get_task_by_uid", {"uid": uid}):
                break
        else:
            uid = f"x{len(self._given)}"  # outside of what is dumped, but for lists and histories
        self._given.add(uid)
        return uid

    def _dead(self) -> set[str]:
        rows = [self._hand.engine.query("read_tombstones", {"namespace": name}) for name in NAMESPACES]
        return {row[0] for found in rows for row in found}

    def claim_free(self, uid: str) -> dict[str, Any]:
        holder = self._hand.holder(uid)
        who = {"worker": self._random.choice(WORKERS), "host": "here", "pid": 7, "user": "ada"}
        seen = {"seen_epoch": self._near(holder.epoch if holder else 0)}
        return {"uid": uid, **self._event("attempt started"), **seen, **who}

    def claim(self, uid: str) -> dict[str, Any]:
        holder = self._hand.holder(uid)
        seen = {
            "seen_epoch": self._near(holder.epoch if holder else 0),
            "seen_worker": holder.worker if holder else None,
        }
        if self._random.random() < 0.2:
            seen["seen_worker"] = self._random.choice((None, *WORKERS))
        rows = self._hand.engine.query("get_task_by_uid", {"uid": uid})
        before = (
            rows[0][4] if rows and rows[0][4] in ("running", "pending") else self._random.choice(("running", "pending"))
        )
        who = {"worker": self._random.choice(WORKERS), "host": "here", "pid": 7, "user": "ada", "agent": "agent"}
        return {
            "uid": uid,
            **self._event("attempt started"),
            **seen,
            **who,
            "before": before,
            "former": "its process died",
        }

    def release(self, uid: str) -> dict[str, Any]:
        return {"uid": uid, **self._event("attempt ended"), **self._fence(uid), "ended": "released"}

    def checkpoint(self, uid: str) -> dict[str, Any]:
        return {"uid": uid, **self._frame(uid), **self._event("checkpoint"), **self._fence(uid)}

    def mark_progress(self, uid: str) -> dict[str, Any]:
        return {"uid": uid, "progress": b"half", "at": self._clock, **self._fence(uid)}

    def append_entry(self, uid: str) -> dict[str, Any]:
        place = {"line": self._random.choice((1, 1, 2)), "position": self._random.randint(0, 4)}
        return {"uid": uid, **place, "entry": self._random.choice((b"entry", b"\0")), **self._fence(uid)}

    def put_chunk(self, uid: str) -> dict[str, Any]:
        return {
            "uid": uid,
            "owner": self._random.choice(OWNERS),
            "n": self._random.randint(0, 2),
            "chunk_body": b"\0part",
        }

    def move_task(self, uid: str) -> dict[str, Any]:
        pick = self._random.choice
        verb = pick(self._lawful(uid) if self._random.random() < 0.8 else tuple(MOVES))
        befores, after = MOVES[verb]
        happened = self._event(verb)
        frame_of = pick((NO_FRAME, self._frame(uid)))
        if pick((True, False)):
            frame_of = {**frame_of, "parent": frame_of["parent"] if frame_of["adds"] else None}
        holder = self._hand.holder(uid)
        is_held = holder is not None and holder.worker is not None
        fence = pick((_NO_FENCE, self._fence(uid) if is_held or self._random.random() < 0.2 else _NO_FENCE))
        columns = {
            "pause": b"pause" if after == "paused" else None,
            "pause_reason": pick(("rate_limit", "human_input", "human_approval")) if after == "paused" else None,
            "due_at": pick((None, self._clock + 10)) if after == "paused" else None,
            "result": b"result" if after == "completed" else None,
            "error": b"error" if after == "failed" else None,
            "finished_at": happened["at"] if after in FINISHED else None,
        }
        rest = {"after": after, "befores": befores, "version": pick((None, None, self._version(uid))), "ended": verb}
        ends = int(after in FINISHED or fence["epoch"] is not None)
        return {"uid": uid, **frame_of, **happened, **columns, **rest, **fence, "ends": ends}

    def rollback(self, uid: str) -> dict[str, Any]:
        pick = self._random.choice
        target = self._any_seq(uid)
        frame_of = pick((NO_FRAME, frame(target, base=pick((None, target)), content=b"patched")))
        how = pick((("failed,paused", "running"), ("failed,paused,pending,running", None)))
        seen = pick((None, None, self._random.randint(0, 5), 1 << 40))
        rest = {"target": target, "version": self._version(uid), "befores": how[0], "after": how[1], "seen": seen}
        return {"uid": uid, **frame_of, **self._event("rolled back"), **rest, "entries": self._entries()}

    def invalidate(self, uid: str) -> dict[str, Any]:
        seqs = sorted({self._any_seq(uid) for _ in range(self._random.randint(0, 3))})
        target = self._random.choice((self._seqs(uid)[1], self._any_seq(uid)))
        rest = {"target": target, "version": self._version(uid), "seqs": json.dumps(seqs)}
        return {"uid": uid, **self._event("invalidated"), **rest}

    def pin(self, uid: str) -> dict[str, Any]:
        return {"uid": uid, "target": self._any_seq(uid), "pinned": self._random.choice((0, 1))}

    def prune(self, uid: str) -> dict[str, Any]:
        return {"uid": uid, "target": self._any_seq(uid), "owner": self._random.choice(("", *OWNERS))}

    def rebase(self, uid: str) -> dict[str, Any]:
        deltas = [seq for seq, row in self._hand.frames(uid).items() if row.base is not None]
        target = self._random.choice((*deltas, self._any_seq(uid)))
        return {"uid": uid, "target": target, "frame": b"whole", "stored": 5, "chunks": 0}

    def archive(self, uid: str) -> dict[str, Any]:
        return {"uid": uid, "archived_at": self._random.choice((None, self._clock)), **self._event("archived")}

    def delete_task(self, uid: str) -> dict[str, Any]:
        return {"uid": uid, "version": self._version(uid), **self._event("deleted")}

    # ── durable functions ───────────────────────────────────────────────────────────────────────

    def start_function(self, uid: str) -> dict[str, Any]:
        pick = self._random.choice
        call = {"function": pick(FUNCTIONS), "function_version": pick((1, 2)), "arguments": b"arguments"}
        call |= {"queue": pick(QUEUES), "priority": pick((-1, 0, 5)), "parent_uid": pick((None, *UIDS[:3]))}
        here = {"worker": pick((None, *WORKERS)), "host": "h", "pid": 1, "user": "u"}
        return {**self.create_task(uid), **call, **here, "budget": pick((None, b"budget")), **self._terms()}

    def start_hidden(self, uid: str) -> dict[str, Any]:
        return self.start_function(uid)

    def _terms(self) -> dict[str, Any]:
        pick = self._random.choice
        moments = {"not_before": pick((None, 1_000, 1_100)), "deadline_at": pick((None, self._clock))}
        return {"call_key": pick(("", "é")), **moments}

    def open_pause(self, uid: str) -> dict[str, Any]:
        pick = self._random.choice
        what = {"path": pick(PATHS), "reason": "human_input", "topic": pick((None, *TOPICS)), "question": b"why?"}
        moments = {"due_at": pick((None, self._clock)), "expires_at": pick((None, self._clock)), "at": self._clock}
        return {"uid": uid, **what, **moments, **self._fence(uid)}

    def answer_pause(self, uid: str) -> dict[str, Any]:
        place = {"path": self._random.choice(PATHS), "line": self._random.choice((None, 1, 2))}
        return {"uid": uid, **place, "answer": b"yes", **self._event("answered")}

    def send_signal(self, uid: str) -> dict[str, Any]:
        once = self._random.choice((None, None, "e1", "e2"))
        return {
            "uid": uid,
            "name": self._random.choice(TOPICS),
            "value": b"hello",
            **self._event("signal"),
            "once": once,
        }

    def suspend(self, uid: str) -> dict[str, Any]:
        paths = [path for path in PATHS if self._random.random() < 0.4]
        columns = {"pause": b"pause", "pause_reason": "human_input", "due_at": self._random.choice((None, 7))}
        return {"uid": uid, "paths": json.dumps(paths), **columns, **self._event("paused"), **self._fence(uid)}

    def begin_line(self, uid: str) -> dict[str, Any]:
        new = {"function_version": self._random.choice((2, 3)), "arguments": b"new arguments"}
        return {"uid": uid, **new, "entries": self._entries(), **self._event("upgraded"), **self._fence(uid)}

    def complete_function(self, uid: str) -> dict[str, Any]:
        return {"uid": uid, "result": b"result", **self._event("completed"), **self._fence(uid)}

    def fork_function(self, uid: str) -> dict[str, Any]:
        return {**self.start_function(uid), "entries": self._entries()}

    def _entries(self) -> str:
        return self._random.choice(("[]", '[[1, "00ff"]]', '[[1, "00"], [4, "656e747279"]]'))

    def set_switch(self, uid: str) -> dict[str, Any]:
        what = {"namespace": self._place[0], "id": self._random.choice(("", self._place[1])), "why": "é"}
        return {**what, "is_on": self._random.choice((0, 0, 1)), "at": self._clock, "author": "{}"}

    # ── values beside tasks ─────────────────────────────────────────────────────────────────────

    def _value(self, uid: str) -> dict[str, Any]:
        pick = self._random.choice
        place = {"uid": pick((uid, "namespace:main")), "kind": pick(KINDS), "key": pick(KEYS)}
        self._clock += pick((0, 1))
        return {**place, "value": pick((b"value", b"\0")), "due_at": pick((None, self._clock)), "at": self._clock}

    def add_value(self, uid: str) -> dict[str, Any]:
        return {**self._value(uid), "author": "{}"}

    def change_value(self, uid: str) -> dict[str, Any]:
        return {**self.add_value(uid), "version": self._random.choice((1, 1, 1, 2, 3))}

    def drop_value(self, uid: str) -> dict[str, Any]:
        return self.change_value(uid)

    def reseal_value(self, uid: str) -> dict[str, Any]:
        place = self._value(uid)
        return {**place, "old_value": self._random.choice((b"value", b"\0")), "value": place["value"] + b"+"}

    def deliver(self, uid: str) -> dict[str, Any]:
        return {"uid": uid, "handler": self._random.choice(HANDLERS), "delivered": self._random.randint(0, 5)}

    # ── webhooks ────────────────────────────────────────────────────────────────────────────────

    def _hook(self) -> dict[str, Any]:
        self._clock += self._random.choice((0, 1))
        what = {"uid": self._place[0], "id": self._random.choice((*HOOKS, HOOKS[0])), "at": self._clock, "author": "{}"}
        return {**what, "record": self._random.choice((b"record", b"\0"))}

    def add_webhook(self, uid: str) -> dict[str, Any]:
        return self._hook()

    def change_webhook(self, uid: str) -> dict[str, Any]:
        return {**self._hook(), "version": self._random.choice((1, 1, 2, 3))}

    def drop_webhook(self, uid: str) -> dict[str, Any]:
        return self.change_webhook(uid)

    def mark_webhook(self, uid: str) -> dict[str, Any]:
        pick = self._random.choice
        what = {"worker": pick(("", "w1")), "old_worker": pick(("", "", "w1")), "failing_since": pick((None, 1_005))}
        return {**self._hook(), **what}

    def reseal_webhook(self, uid: str) -> dict[str, Any]:
        return {**self._hook(), "old_record": self._random.choice((b"record", b"\0"))}

    def add_delivery(self, uid: str) -> dict[str, Any]:
        pick = self._random.choice
        what = {
            "id": pick(MESSAGES),
            "webhook": pick((*HOOKS, HOOKS[0])),
            "task_uid": uid,
            "number": 1,
            "event": "task.paused",
        }
        return {"uid": self._place[0], **what, "at": self._clock, "due_at": self._clock, "body": b"body"}

    def record_delivery(self, uid: str) -> dict[str, Any]:
        pick = self._random.choice
        what = {"id": pick(MESSAGES), "tries": pick((0, 0, 1)), "due_at": pick((None, self._clock + 5))}
        ended = {"state": pick(("due", "delivered")), "status": pick((None, 204)), "took_ms": 3}
        return {"uid": self._place[0], **what, **ended, "at": self._clock, "answer": pick((None, b"answer"))}

    def drop_deliveries(self, uid: str) -> dict[str, Any]:
        pick = self._random.choice
        return {"uid": self._place[0], "webhook": pick((*HOOKS, HOOKS[0])), "before": pick(("~", "~", *MESSAGES))}

    def reseal_delivery(self, uid: str) -> dict[str, Any]:
        new = {"body": b"body", "answer": b"answer"}
        old = {"old_body": b"body", "old_answer": self._random.choice((None, b"answer"))}
        return {"uid": self._random.choice(MESSAGES), **new, **old}

    def import_task(self, uid: str) -> dict[str, Any]:
        """A task that is here, once more under another uid and perhaps another id."""
        (namespace, id), other = self._place, self._random.choice(UIDS)
        rows: dict[str, list[Any]] = {table: [] for table in MOVED}
        for table, told in self._hand.engine.query("dump_task", {"uid": uid}):
            row = json.loads(told)
            for column in ("uid", "task_uid"):
                row.update({column: other} if column in row else {})
            rows[table].append(row | ({"owner": other} if table == "shelf" else {}))
        rows["memory"].clear()
        for row in rows["tasks"]:
            row.update(namespace=namespace, id=self._random.choice((id, f"{id}-moved")), is_current=True)
        return {"uid": other, **{table: json.dumps(found) for table, found in rows.items()}}

    # ── what ends a pause by itself ─────────────────────────────────────────────────────────────

    def _seen_due(self, moments: Sequence[int | None]) -> dict[str, Any]:
        pick = self._random.choice
        seen = pick(moments) if moments and self._random.random() < 0.8 else pick((None, self._clock))
        return {"seen_due_at": seen, "due_at": pick((None, self._clock + 5))}

    def _question(self, uid: str) -> dict[str, Any]:
        rows = self._hand.engine.query("read_pauses", {"uid": uid})
        row = self._random.choice([row for row in rows if row[6] is None] or rows or [(PATHS[0], *[None] * 5)])
        return {"uid": uid, "path": row[0], **self._seen_due([row[5]])}

    def rearm_pause(self, uid: str) -> dict[str, Any]:
        return {**self._question(uid), "question": b"and now?"}

    def remind_pause(self, uid: str) -> dict[str, Any]:
        return {**self._question(uid), **self._event("reminded")}

    def rearm_task(self, uid: str) -> dict[str, Any]:
        rows = self._hand.engine.query("get_task_by_uid", {"uid": uid})
        return {"uid": uid, **self._seen_due([TaskRow(*row).due_at for row in rows]), "pause": b"later"}

    def note_rate_limit(self, uid: str) -> dict[str, Any]:
        pick = self._random.choice
        who = {"uid": uid, "namespace": pick(NAMESPACES), "provider": pick(("openai", "é"))}
        return {**who, "reset_at": pick((None, self._clock + 7)), "at": self._clock, "quiet_ms": pick((0, 10))}

    # ── memory ──────────────────────────────────────────────────────────────────────────────────

    def put_memory(self, uid: str) -> dict[str, Any]:
        pick, key = self._random.choice, self._random.choice(MEMORY_KEYS)
        asked = {"namespace": self._place[0], "life": "", "key": key}
        rows = self._hand.engine.query("get_memory", asked)
        seen = pick((None, self._near(rows[0][0] if rows else 0)))
        fence = pick((_NO_FENCE, self._fence(uid)))
        owner = pick(("", self._place[1], self._place[1]))
        kept = {"namespace": self._place[0], "key": key, "owner": owner, "value": pick((b"\0value", b"other"))}
        when = {"at": self._clock, "expires_at": pick((None, None, self._clock + 3))}
        return {"uid": uid, **kept, **when, "seen": seen, **fence}

    def write_memory(self, uid: str) -> dict[str, Any]:
        pick = self._random.choice
        asked = [self.put_memory(uid) for _ in range(pick((1, 2, 3)))]
        rows, contents = [], b""
        for n, one in enumerate({one["key"]: one for one in asked}.values()):
            size = pick((None, len(one["value"]), len(one["value"])))
            row = {name: one[name] for name in ("key", "owner", "seen", "expires_at")}
            rows.append({**row, "n": n, "start": len(contents) + 1, "size": size})
            contents += one["value"]
        whole = {"rows": json.dumps(rows), "contents": contents}
        return {**{name: asked[0][name] for name in ("uid", "namespace", "at", "epoch", "worker")}, **whole}

    def record_memory(self, uid: str) -> dict[str, Any]:
        entry = self.append_entry(uid)
        return {**self.put_memory(uid), **entry, "refused": b"refused"}

    def drop_memory(self, uid: str) -> dict[str, Any]:
        before = self._random.choice((None, self._clock))
        return {"namespace": self._place[0], "key": self._random.choice(MEMORY_KEYS), "before": before}

    def reseal_memory(self, uid: str) -> dict[str, Any]:
        place = {"life": self._random.choice(("", "", uid)), "key": self._random.choice(MEMORY_KEYS)}
        rows = self._hand.engine.query("get_memory", {"namespace": self._place[0], **place})
        old = rows[0][3] if rows else b"gone"
        return {"uid": self._place[0], **place, "value": old + b"+", "old_value": old}

    # ── workers ─────────────────────────────────────────────────────────────────────────────────

    def announce(self, uid: str) -> dict[str, Any]:
        return {"worker": self._random.choice(WORKERS), "knows": self._random.choice(("", "[]"))}

    def ask_worker(self, uid: str) -> dict[str, Any]:
        return {"worker": self._random.choice(WORKERS), "wish": self._random.choice(("", "drain"))}

    def reap(self, uid: str) -> dict[str, Any]:
        fence = self._fence(uid)
        seen = {"seen_epoch": fence["epoch"], "seen_worker": fence["worker"]}
        seen["seen_beats"] = self._random.choice((None, None, 0, 1, 2))
        counted = {"losses": self._random.choice((0, 1, 2)), "lost_position": 4, "not_before": self._clock}
        return {"uid": uid, **seen, **counted, **self._event("worker_lost"), "ended": "its process died"}

    def stand_down(self, uid: str) -> dict[str, Any]:
        fence = self._fence(uid)
        return {
            "uid": uid,
            **fence,
            "epoch": max(fence["epoch"] - self._random.randint(0, 1), 0),
            "stopped": ", stopped",
        }

    def postpone(self, uid: str) -> dict[str, Any]:
        later = {"arguments": self._random.choice((b"late", b"later")), "not_before": self._clock + 5}
        return {"uid": uid, **later, **self._event("postponed")}

    def flag_attempt(self, uid: str) -> dict[str, Any]:
        return {"uid": uid, "version": self._version(uid), **self._event("stalled"), **self._fence(uid)}

    def take_slot(self, uid: str) -> dict[str, Any]:
        pick = self._random.choice
        place = {"scope": pick(SCOPES), "n": pick((1, 2))}
        rows = self._hand.engine.query("read_slots", {"scopes": json.dumps([place["scope"]])})
        seen = next((row[2:6] for row in rows if row[1] == place["n"]), (None,) * 4)
        names = ("seen_uid", "seen_epoch", "seen_worker", "seen_until")
        new = {"uid": uid, "epoch": pick((1, 2)), "worker": pick(WORKERS), "until": pick((0, 1_010))}
        return {**place, **dict(zip(names, pick((seen, seen, (None,) * 4)), strict=True)), **new}

    def free_slot(self, uid: str) -> dict[str, Any]:
        pick = self._random.choice
        rows = self._hand.engine.query("read_slots", {"scopes": json.dumps(SCOPES)})
        row = pick(rows) if rows and pick((True, True, False)) else (SCOPES[0], 1, uid, 1, WORKERS[0])
        return dict(zip(("scope", "n", "uid", "epoch", "worker"), row[:5], strict=True))

    # ── keys ────────────────────────────────────────────────────────────────────────────────────

    def drop_chunks(self, uid: str) -> dict[str, Any]:
        return {"uid": uid, "owner": self._random.choice(OWNERS)}

    def _sealed(self, uid: str, query: str, names: Sequence[str], **place: Any) -> dict[str, Any]:
        """The columns of one row as they are, or nearly, and others to put in their place."""
        rows = self._hand.engine.query(query, {"uid": uid, **place})
        old = dict(zip(names, rows[0] if rows else [b"gone"] * len(names), strict=True))
        if self._random.random() < 0.1:
            old[self._random.choice(tuple(names))] = b"stale"
        new = {name: None if data is None else data + b"+" for name, data in old.items()}
        return {"uid": uid, **place, **new, **{f"old_{name}": data for name, data in old.items()}}

    def reseal_task(self, uid: str) -> dict[str, Any]:
        rows = self._hand.engine.query("get_task_by_uid", {"uid": uid})
        old = {name: getattr(TaskRow(*rows[0]), name) if rows else None for name in _SEALED_OF_A_TASK}
        new = {name: None if data is None else data + b"+" for name, data in old.items()}
        return {"uid": uid, **new, **{f"old_{name}": data for name, data in old.items()}}

    def reseal_checkpoint(self, uid: str) -> dict[str, Any]:
        target = self._any_seq(uid)
        found = self._hand.frames(uid).get(target)
        old = found.frame if found is not None else b"gone"
        is_chunked = self._random.random() < 0.3  # then the frame is the name of its chunks' owner
        new = {"frame": b"o1", "chunks": 1} if is_chunked else {"frame": old + b"+", "chunks": 0}
        owner = self._random.choice(("", *OWNERS))
        return {"uid": uid, "target": target, **new, "stored": 9, "old_frame": old, "old_owner": owner}

    def reseal_event(self, uid: str) -> dict[str, Any]:
        rows = self._hand.engine.query("read_events", {"uid": uid, "after": 0, "limit": 1000})
        row = self._random.choice(rows) if rows else (1, 0, "", "", b"gone")
        return {"uid": uid, "number": row[0], "body": row[4] + b"+", "old_body": row[4]}

    def reseal_entry(self, uid: str) -> dict[str, Any]:
        place = {"line": self._random.choice((1, 1, 2)), "position": self._random.randint(0, 4)}
        return self._sealed(uid, "read_entry", ("entry",), **place)

    def reseal_call(self, uid: str) -> dict[str, Any]:
        return self._sealed(uid, "sealed_call", ("arguments", "budget"))

    def reseal_pause(self, uid: str) -> dict[str, Any]:
        return self._sealed(uid, "sealed_pause", ("question", "answer"), path=self._random.choice(PATHS))

    def reseal_signal(self, uid: str) -> dict[str, Any]:
        place = {"signal": self._random.choice(TOPICS), "number": self._random.randint(1, 2)}
        return self._sealed(uid, "sealed_signal", ("value",), **place)
