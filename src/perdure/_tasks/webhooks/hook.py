"""A webhook: where events are sent to, which ones, and with which secrets. Pure.

`HookRecord` is what the store keeps, sealed as a whole. `Webhook` is what callers see: everything but the secrets.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from perdure._ground.clock import moment
from perdure._model import EVENT_NAMES, REASONS
from perdure.errors import InvalidInput

EVERY = "*"
PING, DISABLED = "webhook.ping", "webhook.disabled"
NAMES: tuple[str, ...] = (*EVENT_NAMES.values(), DISABLED)
_MOST_NAMES, _LONGEST, _LONGEST_DESCRIPTION = 100, 200, 500


class HookRecord(Struct, frozen=True, kw_only=True):
    """A webhook as the store keeps it. Moments are milliseconds."""

    url: str
    secret: str
    events: tuple[str, ...] = (EVERY,)
    reasons: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    tags: dict[str, str] = field(default_factory=dict)
    data: bool = False
    description: str = ""
    made_at: int
    enabled: bool = True
    disabled_at: int | None = None
    disabled_why: str = ""
    former: str | None = None
    former_until: int = 0
    once: str = ""  # the key of the request that its secret was made for

    def secrets(self, now_ms: int) -> tuple[str, ...]:
        """The secrets that a message is signed with now: two while a secret is being replaced."""
        if self.former is not None and now_ms < self.former_until:
            return self.secret, self.former
        return (self.secret,)


class Webhook(Struct, frozen=True, kw_only=True):
    """A webhook, without its secrets."""

    id: str
    url: str
    events: Sequence[str]  # dotted names; "*" is all of them
    reasons: Sequence[str]  # of task.paused, only pauses for these reasons; empty: all
    functions: Sequence[str]  # only events of tasks with one of these functions; empty: of all tasks
    agents: Sequence[str]
    tags: Mapping[str, str]
    data: bool  # messages also carry what agents wrote
    description: str
    enabled: bool
    made_at: datetime
    changed_at: datetime
    made_by: Mapping[str, Any]
    disabled_at: datetime | None
    disabled_why: str
    failing_since: datetime | None  # every try since then has failed
    next_try_at: datetime | None  # when its first waiting message is sent
    rotating_until: datetime | None  # until then messages also carry a signature of the former secret
    version: int


class MadeWebhook(Struct, frozen=True, kw_only=True):
    """A webhook and its new secret, which is shown this once."""

    webhook: Webhook
    secret: str = field()

    def __repr__(self) -> str:
        return f"MadeWebhook(webhook={self.webhook!r}, secret='…')"


class Facts(Struct, frozen=True):
    """The facts of a task that a filter looks at."""

    function: str | None
    agent: str
    tags: Mapping[str, str]


def wants(record: HookRecord, name: str, reason: str | None, facts: Facts) -> bool:
    """True if this webhook wants an event of this name. `reason` is that of a pause."""
    if EVERY not in record.events and name not in record.events:
        return False
    if name == "task.paused" and record.reasons and reason not in record.reasons:
        return False
    if record.functions and facts.function not in record.functions:
        return False
    if record.agents and facts.agent not in record.agents:
        return False
    return all(facts.tags.get(key) == value for key, value in record.tags.items())


def check_events(names: Iterable[str]) -> tuple[str, ...]:
    """
    Raises:
        InvalidInput: there are none, or one is not the name of an event.
    """
    found = _texts("events", names)
    if not found:
        raise InvalidInput("a webhook needs the name of an event", do='"task.paused", "task.failed", … or "*" for all')
    for name in found:
        if name not in (*NAMES, EVERY):
            near = difflib.get_close_matches(name, NAMES, n=1, cutoff=0.5)
            raise InvalidInput(
                f"unknown event {name!r}",
                do=f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(NAMES)}",
            )
    return found


def check_reasons(reasons: Iterable[str]) -> tuple[str, ...]:
    """
    Raises:
        InvalidInput: one is not a reason to pause.
    """
    found = _texts("reasons", reasons)
    if unknown := [reason for reason in found if reason not in REASONS]:
        raise InvalidInput(f"{unknown[0]!r} is not a reason to pause", do=f"choose from {', '.join(REASONS)}")
    return found


def check_names(what: str, names: Iterable[str]) -> tuple[str, ...]:
    """
    Raises:
        InvalidInput: there are too many, or one is not a text of a sound length.
    """
    return _texts(what, names)


def check_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """
    Raises:
        InvalidInput: there are too many, or one is not a text of a sound length.
    """
    _texts("tags", tags)
    _texts("tags", tags.values())
    return dict(tags)


def check_description(text: str) -> str:
    """
    Raises:
        InvalidInput: it is too long.
    """
    if len(text) > _LONGEST_DESCRIPTION:
        raise InvalidInput(f"the description has {len(text)} characters; at most {_LONGEST_DESCRIPTION} are kept")
    return text


def _texts(what: str, given: Iterable[str]) -> tuple[str, ...]:
    found = (given,) if isinstance(given, str) else tuple(given)
    if len(found) > _MOST_NAMES or not all(0 < len(one) <= _LONGEST for one in found):
        raise InvalidInput(f"{what} has up to {_MOST_NAMES} texts of 1 to {_LONGEST} characters")
    return found


def disable(record: HookRecord, now_ms: int, why: str) -> HookRecord:
    return replace(record, enabled=False, disabled_at=now_ms, disabled_why=why)


def enable(record: HookRecord) -> HookRecord:
    return replace(record, enabled=True, disabled_at=None, disabled_why="")


def when(ms: int | None) -> datetime | None:
    return None if ms is None else moment(ms)
