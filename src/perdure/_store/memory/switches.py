"""Tasks that are stopped from outside; the same names and parameters as `sqlite/queries`."""

from __future__ import annotations

from typing import NamedTuple

from perdure._store.memory.tables import Tables
from perdure._store.rows import Params, Row


class Switch(NamedTuple):
    is_on: bool
    why: str
    at: int
    author: str


def set_switch(tables: Tables, p: Params) -> Row | None:
    is_on = bool(p["is_on"])
    tables.put(tables.switches, (p["namespace"], p["id"]), Switch(is_on, p["why"], p["at"], p["author"]))
    return (is_on,)


def read_switches(tables: Tables, p: Params) -> list[Row]:
    found = sorted(tables.switches.items())
    return [(id, *switch[1:]) for (namespace, id), switch in found if namespace == p["namespace"] and switch.is_on]


def is_stopped(tables: Tables, namespace: str, id: str) -> bool:
    found = [tables.switches.get((namespace, name)) for name in ("", id)]
    return any(switch is not None and switch.is_on for switch in found)


VERBS = {"set_switch": set_switch}
QUERIES = {"read_switches": read_switches}
