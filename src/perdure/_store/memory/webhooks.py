"""Webhooks and their messages; the same names and parameters as `sqlite/queries`. In verbs `uid` is the namespace."""

from __future__ import annotations

from collections.abc import Callable

from perdure._store.memory.tables import Tables
from perdure._store.rows import DeliveryRow, HookRow, Params, Row

_HEAD, _SOME = 300, 500


# ── verbs ────────────────────────────────────────────────────────────────────────────────────────


def add_webhook(tables: Tables, p: Params) -> Row | None:
    if (p["uid"], p["id"]) in tables.webhooks:
        return None
    row = HookRow(p["id"], 1, p["at"], p["author"], p["record"], "", None, None)
    tables.put(tables.webhooks, (p["uid"], p["id"]), row)
    return (1,)


def change_webhook(tables: Tables, p: Params) -> Row | None:
    row = tables.webhooks.get((p["uid"], p["id"]))
    if row is None or row.version != p["version"]:
        return None
    new = row._replace(version=row.version + 1, changed_at=p["at"], author=p["author"], record=p["record"])
    tables.put(tables.webhooks, (p["uid"], p["id"]), new)
    return (new.version,)


def mark_webhook(tables: Tables, p: Params) -> Row | None:
    row = tables.webhooks.get((p["uid"], p["id"]))
    if row is None or row.worker != p["old_worker"]:
        return None
    new = row._replace(worker=p["worker"], failing_since=p["failing_since"])
    tables.put(tables.webhooks, (p["uid"], p["id"]), new)
    return (p["id"],)


def drop_webhook(tables: Tables, p: Params) -> Row | None:
    row = tables.webhooks.get((p["uid"], p["id"]))
    if row is None or row.version != p["version"]:
        return None
    tables.remove(tables.webhooks, (p["uid"], p["id"]))
    for one in _of_hook(tables, p["uid"], p["id"]):
        tables.remove(tables.hook_deliveries, one.id)
    return (p["id"],)


def add_delivery(tables: Tables, p: Params) -> Row | None:
    if (p["uid"], p["webhook"]) not in tables.webhooks or p["id"] in tables.hook_deliveries:
        return None
    what = (p["id"], p["webhook"], p["task_uid"], p["number"], p["event"], p["at"], p["due_at"])
    row = DeliveryRow(*what, 0, "due", None, None, None, p["body"], None)
    tables.put(tables.hook_deliveries, p["id"], (p["uid"], row))
    return (p["id"],)


def record_delivery(tables: Tables, p: Params) -> Row | None:
    namespace, row = tables.hook_deliveries.get(p["id"], ("", None))
    if row is None or (namespace, row.tries) != (p["uid"], p["tries"]) or row.due_at is None:
        return None
    new = row._replace(tries=row.tries + 1, state=p["state"], due_at=p["due_at"], status=p["status"])
    new = new._replace(sent_at=p["at"], took_ms=p["took_ms"], answer=p["answer"])
    tables.put(tables.hook_deliveries, p["id"], (namespace, new))
    return (new.tries,)


def drop_deliveries(tables: Tables, p: Params) -> Row | None:
    found = [one for one in _of_hook(tables, p["uid"], p["webhook"]) if one.id < p["before"]]
    for one in found[:_SOME]:
        tables.remove(tables.hook_deliveries, one.id)
    return (p["webhook"],) if found else None


def reseal_webhook(tables: Tables, p: Params) -> Row | None:
    row = tables.webhooks.get((p["uid"], p["id"]))
    if row is None or row.record != p["old_record"]:
        return None
    tables.put(tables.webhooks, (p["uid"], p["id"]), row._replace(record=p["record"]))
    return (p["id"],)


def reseal_delivery(tables: Tables, p: Params) -> Row | None:
    """Here `uid` is the message's id."""
    namespace, row = tables.hook_deliveries.get(p["uid"], ("", None))
    if row is None or (row.body, row.answer) != (p["old_body"], p["old_answer"]):
        return None
    tables.put(tables.hook_deliveries, p["uid"], (namespace, row._replace(body=p["body"], answer=p["answer"])))
    return (p["uid"],)


# ── queries ──────────────────────────────────────────────────────────────────────────────────────


def list_webhooks(tables: Tables, p: Params) -> list[Row]:
    rows: list[Row] = []
    for (namespace, id), row in sorted(tables.webhooks.items()):
        if namespace == p["namespace"]:
            due = [one.due_at for one in _of_hook(tables, namespace, id) if one.due_at is not None]
            rows.append(row._replace(next_due=min(due, default=None)))
    return rows


def hook_namespaces(tables: Tables, p: Params) -> list[Row]:
    return [(name,) for name in sorted({namespace for namespace, _ in tables.webhooks})]


def due_deliveries(tables: Tables, p: Params) -> list[Row]:
    found = [one for one in _of_hook(tables, p["namespace"], p["webhook"]) if (one.due_at or p["by"] + 1) <= p["by"]]
    found.sort(key=lambda one: (one.due_at or 0, one.id))
    return [*found[: p["limit"]]]


def list_deliveries(tables: Tables, p: Params) -> list[Row]:
    found = _of_hook(tables, p["namespace"], p["webhook"])
    rows: list[Row] = [one for one in reversed(found) if one.id < p["before"] and p["state"] in ("", one.state)]
    return rows[: p["limit"]]


def get_delivery(tables: Tables, p: Params) -> list[Row]:
    namespace, row = tables.hook_deliveries.get(p["id"], ("", None))
    return [row] if row is not None and namespace == p["namespace"] else []


def sealed_webhook(tables: Tables, p: Params) -> list[Row]:
    row = tables.webhooks.get((p["uid"], p["id"]))
    return [] if row is None else [(row.record,)]


def sealed_delivery(tables: Tables, p: Params) -> list[Row]:
    _, row = tables.hook_deliveries.get(p["uid"], ("", None))
    return [] if row is None else [(row.body, row.answer)]


def heads_of_webhooks(tables: Tables, p: Params) -> list[Row]:
    found = sorted(place for place in tables.webhooks if place > (p["uid"], p["id"]))
    return [(*place, tables.webhooks[place].record[:_HEAD]) for place in found[: p["limit"]]]


def heads_of_deliveries(tables: Tables, p: Params) -> list[Row]:
    found = [row for id, (_, row) in sorted(tables.hook_deliveries.items()) if id > p["uid"]]
    return [(row.id, row.body[:_HEAD], row.answer and row.answer[:_HEAD]) for row in found[: p["limit"]]]


def changed_undelivered(tables: Tables, p: Params) -> list[Row]:
    found: list[Row] = []
    for uid, task in sorted(tables.tasks.items()):
        had = tables.deliveries.get(uid, {}).get(p["handler"], 0)
        is_here = task.namespace == p["namespace"] and task.is_current
        if is_here and task.updated_at >= p["since"] and task.event_count > had:
            found.append((uid, task.id, task.event_count, had))
    return found[: p["limit"]]


def _of_hook(tables: Tables, namespace: str, webhook: str) -> list[DeliveryRow]:
    rows = [row for of, row in tables.hook_deliveries.values() if (of, row.webhook) == (namespace, webhook)]
    return sorted(rows, key=lambda row: row.id)


_VERBS: tuple[Callable[[Tables, Params], Row | None], ...] = (
    add_webhook,
    change_webhook,
    mark_webhook,
    drop_webhook,
    add_delivery,
    record_delivery,
    drop_deliveries,
    reseal_webhook,
    reseal_delivery,
)
VERBS = {verb.__name__: verb for verb in _VERBS}
_QUERIES: tuple[Callable[[Tables, Params], list[Row]], ...] = (
    list_webhooks,
    hook_namespaces,
    due_deliveries,
    list_deliveries,
    get_delivery,
    sealed_webhook,
    sealed_delivery,
    heads_of_webhooks,
    heads_of_deliveries,
    changed_undelivered,
)
QUERIES = {query.__name__: query for query in _QUERIES}
