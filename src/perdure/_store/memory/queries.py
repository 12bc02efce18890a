"""The answer of each query; the same names and columns as `sqlite/queries`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from operator import attrgetter

from perdure._store.memory import upkeep
from perdure._store.memory.tables import Tables
from perdure._store.rows import CheckpointHead, FrameRow, HolderRow, Params, Row, TaskRow


def get_task(tables: Tables, p: Params) -> list[Row]:
    uid = tables.current.get((p["namespace"], p["id"]))
    return [tables.tasks[uid]] if uid is not None else []


def get_task_by_uid(tables: Tables, p: Params) -> list[Row]:
    return [tables.tasks[p["uid"]]] if p["uid"] in tables.tasks else []


def tasks_of(tables: Tables, p: Params) -> list[Row]:
    return [tables.tasks[uid] for uid in sorted(json.loads(p["uids"])) if uid in tables.tasks]


def get_history(tables: Tables, p: Params) -> list[Row]:
    wanted = (p["namespace"], p["id"])
    return _newest_first(row for row in tables.tasks.values() if (row.namespace, row.id) == wanted)


def list_tasks(tables: Tables, p: Params) -> list[Row]:
    wanted_tags = json.loads(p["tags"]).items()

    def is_wanted(row: TaskRow) -> bool:
        return (
            row.namespace == p["namespace"]
            and row.is_current
            and (p["cursor"] is None or row.uid < p["cursor"])
            and (p["status"] is None or row.status == p["status"])
            and (p["reason"] is None or row.pause_reason == p["reason"])
            and (p["agent"] is None or row.agent == p["agent"])
            and (p["since"] is None or row.created_at >= p["since"])
            and (bool(p["archived"]) or row.archived_at is None)
            and wanted_tags <= json.loads(row.tags).items()
        )

    return _newest_first(filter(is_wanted, tables.tasks.values()))[: p["limit"]]


def read_blocked(tables: Tables, p: Params) -> list[Row]:
    found: list[Row] = []
    left = p["limit"]
    for uid, row in sorted(tables.tasks.items()):
        is_waiting = row.status == "pending" and row.is_current and row.depends_on != "[]" and not row.hidden
        if row.namespace != p["namespace"] or uid <= p["after"] or not is_waiting or left <= 0:
            continue
        others = {name: tables.current.get((row.namespace, name)) for name in sorted(json.loads(row.depends_on))}
        statuses = {name: tables.tasks[other].status if other else None for name, other in others.items()}
        is_settled = set(statuses.values()) == {"completed"} or {"failed", "cancelled"} & set(statuses.values())
        if not p["settled"] or is_settled:
            left -= 1
            found += [(uid, row.id, row.config, name, status) for name, status in statuses.items()]
    return found


def _newest_first(rows: Iterable[TaskRow]) -> list[Row]:
    return sorted(rows, key=attrgetter("uid"), reverse=True)


def read_attempts(tables: Tables, p: Params) -> list[Row]:
    return sorted(tables.attempts.get(p["uid"], {}).values(), key=attrgetter("number"))


def read_events(tables: Tables, p: Params) -> list[Row]:
    rows = (row for row in tables.events.get(p["uid"], {}).values() if row.number > p["after"])
    in_order: list[Row] = sorted(rows, key=attrgetter("number"))
    return in_order[: p["limit"]]


def find_once(tables: Tables, p: Params) -> list[Row]:
    rows = read_events(tables, {"uid": p["uid"], "after": 0, "limit": None})
    return [row for row in rows if p["text"] in row[3]][:1]


def find_signed(tables: Tables, p: Params) -> list[Row]:
    events = read_events(tables, {"uid": p["uid"], "after": 0, "limit": None})
    authors = [row[3] for row in events if not row[2].startswith("attempt ")]
    authors += [value.author for value in tables.shelf.get(p["uid"], {}).values()]
    authors += [hook.author for (space, _), hook in tables.webhooks.items() if f"namespace:{space}" == p["uid"]]
    return [(1,) for author in authors if p["text"] in author][:1]


def read_checkpoints(tables: Tables, p: Params) -> list[Row]:
    rows = (row for row in tables.checkpoints.get(p["uid"], {}).values() if row.seq > p["after"])
    return _oldest_first(rows)[: p["limit"]]


def read_checkpoint_heads(tables: Tables, p: Params) -> list[Row]:
    columns = attrgetter(*CheckpointHead._fields)
    frames = sorted(tables.checkpoints.get(p["uid"], {}).items())
    return [columns(frame) for seq, frame in frames if seq > p["after"]][: p["limit"]]


def read_chain(tables: Tables, p: Params) -> list[Row]:
    frames = tables.checkpoints.get(p["uid"], {})
    chain: dict[int, FrameRow] = {}
    seq = p["target"]
    while seq in frames and seq not in chain:
        chain[seq] = frames[seq]
        seq = frames[seq].base
    return _oldest_first(chain.values())


def _oldest_first(rows: Iterable[FrameRow]) -> list[Row]:
    return sorted(rows, key=attrgetter("seq"))


def read_chunks(tables: Tables, p: Params) -> list[Row]:
    chunks = sorted(tables.chunks.get(p["uid"], {}).items())
    return [(body,) for (owner, _), body in chunks if owner == p["owner"]]


def read_journal(tables: Tables, p: Params) -> list[Row]:
    entries = sorted(tables.journal.get(p["uid"], {}).items())
    return [(position, entry) for (line, position), entry in entries if line == p["line"]]


def read_journal_page(tables: Tables, p: Params) -> list[Row]:
    return [row for row in read_journal(tables, p) if row[0] > p["after"]][: p["limit"]]


def read_lines(tables: Tables, p: Params) -> list[Row]:
    places: dict[int, list[int]] = {}
    entries = tables.journal.get(p["uid"], {})
    for line, position in entries:
        places.setdefault(line, []).append(position)
    found = sorted(((line, min(at), max(at)) for line, at in places.items()), reverse=True)
    return [(line, first, last, entries[line, first]) for line, first, last in found[: p["limit"]]]


def journals_of(tables: Tables, p: Params) -> list[Row]:
    found = [(task[0], task.line) for task in tasks_of(tables, p)]  # type: ignore[attr-defined]
    rows = [(uid, *row) for uid, line in found for row in read_journal(tables, {"uid": uid, "line": line})]
    return rows[: p["limit"]]


def read_holder(tables: Tables, p: Params) -> list[Row]:
    lease = tables.leases.get(p["uid"])
    if lease is None:
        return []
    holder = tables.workers.get(lease.worker) if lease.worker is not None else None
    if holder is None:
        return [HolderRow(lease.epoch, lease.worker, *[None] * 8)]
    return [
        HolderRow(
            lease.epoch,
            lease.worker,
            holder.beats,
            holder.host,
            holder.boot_id,
            holder.pid_ns,
            holder.pid,
            holder.pid_start,
            holder.user,
            holder.lease_ms,
        )
    ]


def read_workers(tables: Tables, p: Params) -> list[Row]:
    return [
        (*worker[:10], tables.held_by(worker.id), worker.knows, worker.wish)
        for _, worker in sorted(tables.workers.items())
    ]


def read_tombstones(tables: Tables, p: Params) -> list[Row]:
    return [row for _, row in sorted(tables.tombstones.items()) if row.namespace == p["namespace"]]


_ALL: tuple[Callable[[Tables, Params], list[Row]], ...] = (get_task, get_task_by_uid, get_history, list_tasks)
_ALL += (read_attempts, read_events, find_once, read_checkpoints, read_chain, read_chunks, read_journal, read_holder)
_ALL += (find_signed,)
_ALL += (read_workers, read_tombstones, read_blocked, tasks_of, journals_of)
_ALL += (read_journal_page, read_lines, read_checkpoint_heads)
QUERIES = {query.__name__: query for query in _ALL} | upkeep.QUERIES
