"""Traces by OpenTelemetry. The trace of a task has an id that is derived from the task's uid.

So every process, webhook and log line that knows the uid names the same trace, and a task that runs for weeks on many
machines is one trace. Spans are made only in a process whose program has imported OpenTelemetry; perdure itself
never imports it. Without it, `tracer` costs one look into a dictionary.
"""

from __future__ import annotations

import sys
from hashlib import sha256
from typing import Any


def ids_of(uid: str) -> tuple[int, int]:
    """The ids of a task's trace and of the span that stands for the task."""
    digest = sha256(f"perdure task {uid}".encode()).digest()
    return int.from_bytes(digest[:16]), int.from_bytes(digest[16:24])


def traceparent(uid: str) -> str:
    """The W3C header that puts a request into the trace of a task."""
    trace, span = ids_of(uid)
    return f"00-{trace:032x}-{span:016x}-01"


def tracer() -> Any | None:
    """What makes spans; None in a program without OpenTelemetry."""
    api = sys.modules.get("opentelemetry.trace")
    return None if api is None else api.get_tracer("perdure")


def inside_task(uid: str) -> Any:
    """The context of OpenTelemetry that a span of this task begins in."""
    api: Any = sys.modules["opentelemetry.trace"]
    trace, span = ids_of(uid)
    parent = api.SpanContext(trace, span, is_remote=True, trace_flags=api.TraceFlags(api.TraceFlags.SAMPLED))
    return api.set_span_in_context(api.NonRecordingSpan(parent))
