"""`GET /metrics`: what one look at a namespace finds, as Prometheus text. Needs prometheus-client."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from perdure._app import Perdure
from perdure._ground.traces import tracer as tracer_here
from perdure._tasks import read_hooks, store_of
from perdure.errors import InvalidInput
from perdure.server.telemetry.catalogue import CATALOGUE, full_name
from perdure.server.telemetry.event_tally import EventTally
from perdure.server.telemetry.figures import Figures, Labels

if TYPE_CHECKING:
    from perdure._worker import Workers

Gauges = Mapping[str, Mapping[Labels, float]]
_MOST_NAMESPACES = 64
_PULSE = 0.1  # seconds


class Telemetry:
    """What one server counts. Requests are counted by namespace; so nobody sees those of another."""

    def __init__(self) -> None:
        self._figures: dict[str, Figures] = {}
        self._tallies: dict[str, tuple[EventTally, Workers]] = {}
        self._turn = asyncio.Lock()
        self._held = 0.0

    def of(self, namespace: str) -> Figures:
        """The figures of a namespace; of very many namespaces, those past the first 64 share one."""
        if namespace not in self._figures and len(self._figures) >= _MOST_NAMESPACES:
            namespace = ""
        return self._figures.setdefault(namespace, Figures())

    def note_request(self, namespace: str, route: str, status: int, seconds: float) -> None:
        """Count a request that has been answered; in a program with OpenTelemetry it also is a span."""
        if (tracer := tracer_here()) is not None:
            end = time.time_ns()
            about = {"http.route": route, "http.response.status_code": status}
            tracer.start_span(route, start_time=end - int(seconds * 1e9), attributes=about).end(end)
        figures = self.of(namespace)
        figures.count("http_requests", route, str(status))
        figures.observe("http_seconds", seconds, route)

    async def feel_pulse(self) -> None:
        """Notice how long the event loop is held up. Runs until it is cancelled."""
        while True:
            began = time.monotonic()
            await asyncio.sleep(_PULSE)
            self._held = max(self._held, time.monotonic() - began - _PULSE)

    async def text(self, namespace: str, app: Perdure) -> bytes:
        """
        Raises:
            InvalidInput: prometheus-client is not installed.
        """
        try:
            from prometheus_client import CollectorRegistry, generate_latest
        except ImportError:
            raise InvalidInput(
                "metrics need prometheus-client, which is not installed", do="pip install 'perdure[server]'"
            ) from None
        async with self._turn:
            if namespace not in self._tallies:
                if len(self._tallies) >= _MOST_NAMESPACES:
                    self._tallies.pop(next(iter(self._tallies)))
                self._tallies[namespace] = EventTally(app, self.of(namespace)), app.workers
            tally, workers = self._tallies[namespace]
            await tally.look()
            gauges = await self._gauges(app, workers)
        registry = CollectorRegistry()
        registry.register(_Collected(gauges, self.of(namespace)))
        return generate_latest(registry)

    async def _gauges(self, app: Perdure, workers: Workers) -> Gauges:
        store, began = store_of(app.tasks), time.monotonic()
        counts = await app.tasks.counts()
        took = time.monotonic() - began
        inbox = await app.inbox.count()
        hooks = await read_hooks(store)
        now = store.clock.now_ms()
        due = [hook.row.next_due for hook in hooks if hook.record.enabled and hook.row.next_due is not None]
        states: dict[Labels, float] = {("enabled",): 0, ("failing",): 0, ("disabled",): 0}
        for hook in hooks:
            is_failing = hook.row.failing_since is not None
            states["disabled" if not hook.record.enabled else "failing" if is_failing else "enabled",] += 1
        alive: dict[Labels, float] = {("alive",): 0, ("silent",): 0, ("dead",): 0}
        for worker in await workers.list():
            alive[worker.state,] += 1
        held, self._held = self._held, 0.0
        gauges: dict[str, Mapping[Labels, float]] = {
            "tasks": {(status,): number for status, number in counts.status.items()},
            "paused_tasks": {(reason,): number for reason, number in counts.reason.items()},
            "inbox_open": {(kind,): number for kind, number in inbox.items()},
            "effects_uncertain": {(): dict(inbox).get("effect", 0)},
            "workers": alive,
            "store_read_seconds": {(): took},
            "webhooks": states,
            "hook_lag_seconds": {(): max(0.0, (now - min(due)) / 1000) if due else 0.0},
            "loop_held_seconds_max": {(): held},
        }
        if store.address.engine == "sqlite":
            gauges["store_bytes"] = {(): _size_of(store.address.target)}
        return gauges


class _Collected:
    """What Prometheus' own library asks for."""

    def __init__(self, gauges: Gauges, figures: Figures) -> None:
        self._gauges, self._figures = gauges, figures

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        for metric in CATALOGUE:
            name = full_name(metric).removesuffix("_total")
            if metric.kind == "gauge":
                gauge = GaugeMetricFamily(name, metric.says, labels=metric.labels)
                for labels, value in self._gauges.get(metric.name, {}).items():
                    gauge.add_metric(labels, value)
                yield gauge
            elif metric.kind == "counter":
                counter = CounterMetricFamily(name, metric.says, labels=metric.labels)
                for labels, number in self._figures.counters[metric.name].items():
                    counter.add_metric(labels, number)
                yield counter
            else:
                histogram = HistogramMetricFamily(name, metric.says, labels=metric.labels)
                for labels, buckets, total in self._figures.buckets_of(metric.name):
                    histogram.add_metric(labels, buckets, total)
                yield histogram


def _size_of(path: str) -> float:
    size = 0
    for end in ("", "-wal"):
        with suppress(OSError):
            size += os.stat(path + end).st_size
    return float(size)
