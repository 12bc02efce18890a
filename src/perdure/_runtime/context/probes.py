"""One probe for each kind of fingerprint. A probe only reads, and gives a small value to compare.

KINDS maps a kind to a function that makes the look from plain data, so that a fresh process can look again.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from perdure._runtime.secrets import resolve
from perdure._runtime.workspace import git_changes, git_head
from perdure.errors import InvalidInput

# Catalogue queries, so that nothing of the user's search path or permissions on rows matters.
_POSTGRES = """
SELECT 'column', n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull::text,
       coalesce(pg_get_expr(d.adbin, d.adrelid), '')
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
UNION ALL
SELECT 'constraint', n.nspname, c.relname, k.conname, pg_get_constraintdef(k.oid), '', ''
FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
UNION ALL
SELECT 'index', schemaname, tablename, indexname, indexdef, '', ''
FROM pg_indexes WHERE schemaname NOT LIKE 'pg\\_%' AND schemaname <> 'information_schema'
ORDER BY 1, 2, 3, 4
"""
# In a process of its own: two copies of SQLite in one process break each other's locks.
_SQLITE = """
import json, sqlite3, sys
con = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
rows = con.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name").fetchall()
print(json.dumps([rows, con.execute("PRAGMA user_version").fetchone()]))
"""


def _postgres(about: Mapping[str, Any]) -> Callable[[], Any]:
    def look() -> dict[str, str]:
        try:
            import psycopg
        except ImportError:
            raise InvalidInput("psycopg is not installed", do="pip install 'perdure[postgres]'") from None
        with psycopg.connect(resolve(about["dsn"]), connect_timeout=8, autocommit=True) as connection:
            rows = connection.execute(_POSTGRES).fetchall()
        return _by_table([[str(part) for part in row] for row in rows], table=2)

    return look


def _sqlite(about: Mapping[str, Any]) -> Callable[[], Any]:
    def look() -> dict[str, str]:
        if not os.path.exists(about["path"]):
            raise InvalidInput(f"there is no file {about['path']}")
        done = subprocess.run(
            [sys.executable, "-I", "-c", _SQLITE, about["path"].replace("?", "%3f").replace("#", "%23")],
            capture_output=True,
            text=True,
            check=False,
            encoding="utf-8",
        )
        if done.returncode:
            raise InvalidInput(done.stderr.strip().splitlines()[-1])
        rows, version = json.loads(done.stdout)
        tables = _by_table([[str(part) for part in row] for row in rows], table=2)
        return {**tables, "user_version": str(version[0])}

    return look


def _by_table(rows: list[list[str]], *, table: int) -> dict[str, str]:
    """One digest for each table, so that a difference can name it."""
    parts: dict[str, list[Any]] = {}
    for row in rows:
        parts.setdefault(row[table], []).append(row)
    return {name: digest_of(found) for name, found in sorted(parts.items())}


def _file(about: Mapping[str, Any]) -> Callable[[], Any]:
    def look() -> str:
        digest = hashlib.sha256()
        with open(about["path"], "rb") as file:
            while part := file.read(1 << 20):
                digest.update(part)
        return digest.hexdigest()

    return look


def _git(about: Mapping[str, Any]) -> Callable[[], Any]:
    def look() -> dict[str, str]:
        folder = Path(about["folder"])
        head = git_head(folder)
        if head is None:
            raise InvalidInput(f"{folder} is in no git repository")
        changes = hashlib.sha256(git_changes(folder)).hexdigest() if about.get("dirty", True) else ""
        return {"head": head, "changes": changes}

    return look


def _api(about: Mapping[str, Any]) -> Callable[[], Any]:
    def look() -> str:
        if not str(about["url"]).startswith(("http://", "https://")):
            raise InvalidInput(f"{about['url']!r} is not a web address")
        with urllib.request.urlopen(about["url"], timeout=8) as answer:
            if about.get("header"):
                return str(answer.headers[about["header"]])
            found: Any = json.loads(answer.read(1 << 20))
        for part in str(about.get("field") or "version").split("."):
            found = found[part]
        return str(found)

    return look


def _packages(about: Mapping[str, Any]) -> Callable[[], Any]:
    def version(name: str) -> str:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            return "not installed"

    return lambda: {str(name): version(str(name)) for name in about["names"]}


def _interpreter(_: Mapping[str, Any]) -> Callable[[], Any]:
    return lambda: f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}"


KINDS: Mapping[str, Callable[[Mapping[str, Any]], Callable[[], Any]]] = {
    "postgres": _postgres,
    "sqlite": _sqlite,
    "file": _file,
    "git": _git,
    "api": _api,
    "packages": _packages,
    "interpreter": _interpreter,
}


def digest_of(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str, separators=(",", ":"))
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def storable(value: Any) -> Any:
    """A value as it is kept: small plain data as it is, anything else by its digest."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str) and len(value) <= 200:
        return value
    if isinstance(value, Mapping) and all(isinstance(k, str) and isinstance(v, str) for k, v in value.items()):
        return dict(value)
    return digest_of(value)


def difference(before: Any, after: Any) -> str:
    """The difference of two values, in a few words."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        names = sorted({*before, *after})
        told = [
            _change(name, before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)
        ]
        more = f" and {len(told) - 5} more" if len(told) > 5 else ""
        return ", ".join(told[:5]) + more
    return f"it was {_short(before)}, it is {_short(after)}"


def _change(name: str, before: Any, after: Any) -> str:
    if before is None:
        return f"{name} is new"
    if after is None:
        return f"{name} is gone"
    return f"{name} was {_short(before)}, is {_short(after)}"


def _short(value: Any) -> str:
    text = str(value)
    return f"{text[:12]}…" if len(text) > 40 else text
