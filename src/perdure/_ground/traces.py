"""Traces by OpenTelemetry. The trace of a task has an id that is derived from the task's uid.

So every process, webhook and log line that knows the uid names the same trace, and a task that runs for weeks on many
machines is one trace. Spans are made only in a process whose program has imported OpenTelemetry; perdure itself
never imports it. Without it, `tracer` costs one look into a dictionary.
"""

from __future__ import annotations

import re
import sys
from hashlib import sha256
from typing import Any

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.{0,200})?", re.ASCII)


def ids_of(uid: str) -> tuple[int, int]:
    """The ids of a task's trace and of the span that represents the task."""
    digest = sha256(f"perdure task {uid}".encode()).digest()
    return int.from_bytes(digest[:16]), int.from_bytes(digest[16:24])


def traceparent(uid: str) -> str:
    """The W3C header that puts a request into the trace of a task."""
    trace, span = ids_of(uid)
    return f"00-{trace:032x}-{span:016x}-01"


def tracer() -> Any | None:
    """The tracer; None in a program without OpenTelemetry."""
    api = sys.modules.get("opentelemetry.trace")
    return None if api is None else api.get_tracer("perdure")


def inside_task(uid: str) -> Any:
    """The context of OpenTelemetry that a span of this task begins in."""
    return _context(*ids_of(uid), flags=1)


def context_of(header: str) -> Any | None:
    """The context that a W3C `traceparent` names; None when it is not one."""
    found = _TRACEPARENT.fullmatch(header.strip())
    if found is None or found[1] == "ff" or not int(found[2], 16) or not int(found[3], 16):
        return None
    return _context(int(found[2], 16), int(found[3], 16), flags=int(found[4], 16))


def link_to(uid: str) -> Any:
    """A link from a span elsewhere to the trace of a task."""
    api: Any = sys.modules["opentelemetry.trace"]
    trace, span = ids_of(uid)
    return api.Link(api.SpanContext(trace, span, is_remote=True, trace_flags=api.TraceFlags(1)))


def server_kind() -> Any:
    """The kind of spans for requests that are answered here."""
    return sys.modules["opentelemetry.trace"].SpanKind.SERVER


def _context(trace: int, span: int, flags: int) -> Any:
    api: Any = sys.modules["opentelemetry.trace"]
    parent = api.SpanContext(trace, span, is_remote=True, trace_flags=api.TraceFlags(flags))
    return api.set_span_in_context(api.NonRecordingSpan(parent))
