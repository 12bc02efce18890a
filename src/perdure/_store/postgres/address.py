"""The parts of a PostgreSQL server's address: how to connect, and the part a person may see. Pure."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from perdure.errors import InvalidInput

# Only where the address says nothing else. A silent network is noticed in about ten seconds, not in the
# quarter of an hour that TCP itself would take.
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "fallback_application_name": "perdure",
    "target_session_attrs": "primary",  # a standby cannot be written to, and what is read there may be old
}
# Whatever it says: what we send is in this one.
_FIXED: dict[str, Any] = {"client_encoding": "utf8"}


def parse(url: str) -> dict[str, Any]:
    """The parameters of a connection.

    Raises:
        InvalidInput: the address cannot be read. It is not repeated, as it may hold a password.
    """
    try:
        return {**_DEFAULTS, **conninfo_to_dict(url), **_FIXED}
    except psycopg.Error:
        raise InvalidInput(
            "the address of the PostgreSQL server cannot be read",
            do="write postgresql://user:password@host:5432/database, and %-encode special characters in the password",
        ) from None


def single_hosts(params: dict[str, Any]) -> list[dict[str, Any]]:
    """The same address with one host each, in their order; none when it has only one."""
    names = {name: str(params[name]).split(",") for name in ("host", "hostaddr", "port") if params.get(name)}
    count = max((len(values) for values in names.values()), default=1)
    if count < 2:
        return []
    return [
        {**params, **{name: values[number] if len(values) == count else values[0] for name, values in names.items()}}
        for number in range(count)
    ]


def place(params: dict[str, Any]) -> str:
    """The name of this store for people: user, host and database, without secrets."""
    user, host, port = (str(params.get(name) or "") for name in ("user", "host", "port"))
    database = quote(str(params.get("dbname") or ""), safe="")
    at = f"{quote(user, safe='')}@" if user else ""
    if host.startswith("/"):
        return f"postgresql://{at}/{database}?host={host}{f'&port={port}' if port else ''}"
    pairs = zip_longest(host.split(","), port.split(","), fillvalue="")
    hosts = ",".join(f"{name}:{number}" if number else name for name, number in pairs)
    return f"postgresql://{at}{hosts}/{database}"


def without_secrets(text: str, params: dict[str, Any]) -> str:
    for name in ("password", "sslpassword"):
        if params.get(name):
            text = text.replace(str(params[name]), "***")
    return text
