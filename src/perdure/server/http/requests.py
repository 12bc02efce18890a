"""The request that a handler gets, and the answer it returns.

A handler is an async function of one `Ask`. It gets a caller who has already been identified and holds the route's
scopes, path parts that are decoded, and a query and a body that fit their shapes. It returns an `Answer`, or raises an
exception of `perdure.errors`, which problems.py turns into problem+json.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    import asyncio

    from perdure._app import Perdure
    from perdure._ground.clock import Clock
    from perdure.server.http.write_turns import WriteTurns
    from perdure.server.settings import Settings
    from perdure.server.telemetry import Telemetry

Scope: TypeAlias = Literal[
    "tasks:read",
    "data:read",
    "tasks:write",
    "tasks:control",
    "inbox:decide",
    "units:type",
    "events:send",
    "schedules:write",
    "webhooks:admin",
    "store:admin",
    "keys:admin",
]
SCOPE_MEANINGS: Mapping[Scope, str] = {
    "tasks:read": "read ids, names, statuses, times and counts",
    "data:read": "read what agents wrote: states, arguments, results, errors, output",
    "tasks:write": "begin tasks and do an agent's own work",
    "tasks:control": "pause, resume, cancel, roll back, fork and delete tasks",
    "inbox:decide": "approve, reject and answer",
    "units:type": "type into units",
    "events:send": "send events",
    "schedules:write": "make and change schedules and triggers",
    "webhooks:admin": "make and change webhooks",
    "store:admin": "look after the store: gc, doctor, bundles, workers",
    "keys:admin": "make and revoke API keys",
}
How: TypeAlias = Literal["key", "session", "socket", "token", "nobody"]


class Caller(Struct, frozen=True):
    """The caller of a request, as its credential identifies it."""

    namespace: str
    scopes: frozenset[str]
    name: str  # of the key, or of the person: it signs what is written
    how: How
    credential: str = ""  # id of the key or session; never its secret
    address: str = ""  # where the connection comes from

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes

    @property
    def reads_data(self) -> bool:
        """True if this caller may see what agents wrote: states, arguments, questions, errors, output."""
        return "data:read" in self.scopes


Q = TypeVar("Q")
B = TypeVar("B")
T = TypeVar("T")


class Services(Protocol):
    """The parts of a server that handlers use. pipeline.py implements it."""

    settings: Settings
    clock: Clock
    stopping: asyncio.Event  # set when the server is about to end: streams say goodbye
    telemetry: Telemetry
    turns: WriteTurns
    policy_reports: int  # violations of the policy of our pages that browsers have told of

    @property
    def has_desk(self) -> bool: ...

    def app_of(self, namespace: str) -> Perdure: ...

    def part(self, kind: type[T]) -> T:
        """The server's part of this class: its Desk, Vault, Live or Overviews."""
        ...


@dataclass(frozen=True, slots=True)
class Ask(Generic[Q, B]):
    """One request, after everything that could be checked before its handler has been checked."""

    app: Perdure  # of the caller's namespace
    caller: Caller
    server: Services
    parts: Mapping[str, str]  # of the path, decoded
    query: Q
    body: B
    headers: Mapping[str, str]  # names in lower case
    request_id: str
    once: str | None = None  # the Idempotency-Key, scoped to the credential and the route
    mark: str = ""  # what signs all that this request and its repeats write; without a key, nothing
    match: int | None = None  # the version that If-Match names
    content: AsyncIterator[bytes] | None = None  # the raw body, for routes whose `body` is RAW
    renew: Callable[[], Awaitable[Caller | None]] | None = None  # who asks, looked at again; None: may not any more
    about: list[str] = field(default_factory=list)  # uids of the tasks that the handler has looked up


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a handler. `value` is encoded as JSON; None is an empty body."""

    value: Any = None
    status: int = 200
    etag: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_secret: bool = False  # it holds what is shown once: it is not kept for a repeated request
    is_large: bool = False  # it may be: it is encoded in a thread


@dataclass(frozen=True, slots=True)
class Streamed:
    """An answer whose body comes bit by bit. The iterator is closed when the client goes away."""

    chunks: AsyncIterator[bytes]
    media: str = "application/octet-stream"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Handler: TypeAlias = Callable[[Ask[Any, Any]], Awaitable[Answer | Streamed]]
