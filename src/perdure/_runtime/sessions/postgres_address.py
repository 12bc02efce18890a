"""Read a PostgreSQL address as libpq does: the login options of a kept session."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any
from urllib.parse import quote

from perdure.errors import InvalidInput

_FILES = ("sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir")


def options_of(dsn: str) -> dict[str, str]:
    """The options in an address, completed by this process's PG… variables and password file.

    Raises:
        InvalidInput: it is not a PostgreSQL address.
    """
    scheme = dsn.partition("://")[0].partition("+")[0]
    if scheme in ("mysql", "mariadb", "mssql", "oracle", "sqlite") and "://" in dsn:
        raise InvalidInput(
            f"{scheme} sessions are not kept",
            do="keep what it takes to open one as a recipe (its address, settings and statements in the task's state) "
            "and open it anew; see docs/guide/sessions.md",
        )
    psycopg = _psycopg()
    try:
        given = psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.Error as problem:
        raise InvalidInput(
            f"this is not a PostgreSQL address: {problem}", do="write postgresql://user@host/db"
        ) from None
    options = {o.keyword.decode(): o.val.decode() for o in psycopg.pq.Conninfo.get_defaults() if o.val is not None}
    options |= {name: str(value) for name, value in given.items() if value is not None}
    if options.get("sslrootcert") == "system" and "sslmode" not in given and "PGSSLMODE" not in os.environ:
        options["sslmode"] = "verify-full"  # libpq's default beside it
    for name in _FILES:
        if options.get(name, "system") not in ("", "system"):
            options[name] = os.path.abspath(options[name])  # the session's process is in another folder
    options.setdefault("dbname", options.get("user", ""))
    if "password" not in options and (found := _from_passfile(options)) is not None:
        options["password"] = found
    return options


def client_options(folder: Path, user: str, database: str, *, guarded: bool) -> dict[str, str]:
    """The addresses by which a driver reaches a session through its folder."""
    options = {"host": str(folder), "port": "5432", "user": user, "dbname": database, "sslmode": "disable"}
    return options | ({"options": "-c perdure.guard=on"} if guarded else {})


def client_url(folder: Path, user: str, database: str, *, guarded: bool) -> str:
    guard = f"&options={quote('-c perdure.guard=on')}" if guarded else ""
    return f"postgresql://{quote(user, safe='')}@/{quote(database, safe='')}?host={quote(str(folder), safe='')}{guard}"


def _psycopg() -> Any:
    try:
        import psycopg
        import psycopg.conninfo
    except ImportError:
        raise InvalidInput(
            "PostgreSQL sessions need psycopg", do="pip install 'perdure[postgres]'", kept="nothing was opened"
        ) from None
    return psycopg


def _from_passfile(options: dict[str, str]) -> str | None:
    path = Path(options.get("passfile") or "~/.pgpass").expanduser()
    try:
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            return None  # libpq ignores it too
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    host = options.get("host") or "localhost"
    wanted = (
        "localhost" if host.startswith("/") else host,
        options.get("port") or "5432",
        options.get("dbname", ""),
        options.get("user", ""),
    )
    for line in lines:
        fields = _fields(line)
        if len(fields) == 5 and all(f in ("*", w) for f, w in zip(fields, wanted, strict=False)):
            return fields[4]
    return None


def _fields(line: str) -> list[str]:
    """The parts between colons; a backslash keeps the next character."""
    fields, escaped = [""], False
    for c in "" if line.startswith("#") else line:
        if escaped or c not in ("\\", ":"):
            fields[-1] += c
            escaped = False
        elif c == "\\":
            escaped = True
        elif len(fields) < 5:
            fields.append("")
        else:
            fields[-1] += c
    return fields
