"""Every metric of a server: its name, its labels and what it says. The reference page is made from this list. Pure."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Metric(NamedTuple):
    """One metric. Its full name begins with `perdure_`; a counter's ends with `_total`."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    labels: tuple[str, ...]
    says: str
    buckets: tuple[float, ...] = ()


_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
_WAITS = (1.0, 10.0, 60.0, 300.0, 1800.0, 3600.0, 4 * 3600.0, 24 * 3600.0, 7 * 24 * 3600.0)
_BYTES = (1e3, 1e4, 1e5, 1e6, 1e7, 1e8)

CATALOGUE: tuple[Metric, ...] = (
    Metric("tasks", "gauge", ("status", "situation"), "Tasks that are not archived; past 2,000 open ones, `other`."),
    Metric("paused_tasks", "gauge", ("reason",), "Paused tasks, by the reason of the pause."),
    Metric("inbox_open", "gauge", ("kind",), "Questions that wait for a person."),
    Metric("effects_uncertain", "gauge", (), "Effects whose outcome is not known; a person settles them."),
    Metric("workers", "gauge", ("state",), "Processes that are registered in the store: alive, silent or dead."),
    Metric("lag_seconds", "gauge", ("queue",), "How long the first task that may begin has waited for a worker."),
    Metric("store_bytes", "gauge", (), "Size of the store: a SQLite file with its log, or the tables in PostgreSQL."),
    Metric("store_commit_seconds", "histogram", (), "How long commits of this process took.", _SECONDS),
    Metric("store_read_seconds", "gauge", (), "How long the store took to answer this look."),
    Metric("webhooks", "gauge", ("state",), "Webhooks: enabled, failing or disabled."),
    Metric("hook_lag_seconds", "gauge", (), "How long the first message to an enabled webhook has been due."),
    Metric("streams", "gauge", (), "Open streams to clients."),
    Metric("streams_refused", "counter", (), "Streams that were refused because all places were taken."),
    Metric("feed_lag_seconds", "histogram", (), "From a change of a task to its message to streams.", _SECONDS),
    Metric("feed_resets", "counter", ("why",), "Clients that had to read a page again: gap, overflow, restart."),
    Metric("loop_held_seconds_max", "gauge", (), "The longest that a request held up all others since the last look."),
    Metric("events", "counter", ("event",), "Events of tasks, by dotted name. They agree with the audit chain."),
    Metric("transitions", "counter", ("from", "to"), "Changes of status, as the events tell them."),
    Metric("attempts", "counter", ("ended",), "Attempts that ended, by how."),
    Metric("inbox_wait_seconds", "histogram", (), "From a pause for a person to the decision.", _WAITS),
    Metric("resume_seconds", "histogram", (), "From the end of a pause to the next attempt.", _WAITS),
    Metric("checkpoint_seconds", "histogram", (), "How long storing a checkpoint through this server took.", _SECONDS),
    Metric("checkpoint_bytes", "histogram", (), "Sizes of stored checkpoints.", _BYTES),
    Metric("effects", "counter", ("state",), "Effects, as the journals tell them: done, failed, uncertain."),
    Metric("restore_units", "counter", ("level",), "Live units that came back: kept, imaged, rebuilt, lost."),
    Metric("restore_failures", "counter", (), "Attempts that could not begin because a restore failed."),
    Metric(
        "duplicates_prevented",
        "counter",
        ("how",),
        "Repeats that were not done again: request, callback, event.",
    ),
    Metric(
        "hook_deliveries", "counter", ("state",), "Tries to deliver by this process: delivered, due (again), failed."
    ),
    Metric("http_requests", "counter", ("route", "status"), "Requests to this server, by route."),
    Metric("http_seconds", "histogram", ("route",), "How long requests took.", _SECONDS),
)
BY_NAME = {metric.name: metric for metric in CATALOGUE}


def full_name(metric: Metric) -> str:
    return f"perdure_{metric.name}{'_total' if metric.kind == 'counter' else ''}"


def as_page() -> str:
    """docs/reference/metrics.md."""
    lines = [
        "# Metrics",
        "",
        "<!-- Made by tools/make_openapi.py from perdure/server/telemetry/catalogue.py. -->",
        "",
        "`GET /metrics` of a server gives these as Prometheus text, to a key with the scope `tasks:read`.",
        "Figures about tasks are of the key's namespace. Counters about tasks come from the events of tasks, so they",
        "agree with the audit chain; they count from the server's first look. No label holds an id, a tag or a user.",
        "",
        "| metric | kind | labels | what it says |",
        "|---|---|---|---|",
    ]
    for metric in CATALOGUE:
        labels = " ".join(f"`{label}`" for label in metric.labels)
        lines.append(f"| `{full_name(metric)}` | {metric.kind} | {labels} | {metric.says} |")
    return "\n".join([*lines, ""])
