"""`GET /metrics`: what one look at a namespace finds, as Prometheus text. Needs prometheus-client."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from perdure._app import Perdure
from perdure._durable import Unfinished
from perdure._model import FINISHED, Status
from perdure._tasks import read_hooks, store_facts, store_of
from perdure.errors import InvalidInput
from perdure.server.telemetry.catalogue import CATALOGUE, full_name
from perdure.server.telemetry.event_tally import EventTally
from perdure.server.telemetry.figures import OTHER, Figures, Labels
from perdure.server.telemetry.held_loop import HeldLoop

if TYPE_CHECKING:
    from perdure._worker import Workers

Gauges = Mapping[str, Mapping[Labels, float]]
_MOST_NAMESPACES = 64
_MOST_QUEUES = 200
_MOST_SKEWS, _SKEWED = 100, 5.0


class Sight(NamedTuple):
    """The figures about a namespace that the parts of a server see at one moment."""

    overview: Unfinished
    streams: int


class Telemetry:
    """What one server counts. Requests are counted by namespace; so nobody sees those of another."""

    def __init__(self) -> None:
        self.held = HeldLoop()
        self._figures: dict[str, Figures] = {}
        self.streams_refused = 0  # since the server began
        self.skews: OrderedDict[str, float] = OrderedDict()  # by credential: seconds that its clock is ahead
        self._process = Figures()  # of no namespace
        self._tallies: dict[str, tuple[EventTally, Workers]] = {}
        self._turn = asyncio.Lock()

    def of(self, namespace: str) -> Figures:
        """The figures of a namespace; of very many namespaces, those past the first 64 share one."""
        if namespace not in self._figures and len(self._figures) >= _MOST_NAMESPACES:
            namespace = ""
        return self._figures.setdefault(namespace, Figures())

    def watch_commits(self, app: Perdure) -> None:
        """Count how long the commits of this process take."""
        store_of(app.tasks).committer.on_commit = lambda seconds: self._process.observe("store_commit_seconds", seconds)

    def note_request(self, namespace: str, route: str, status: int, seconds: float) -> None:
        """Count a request that has been answered."""
        figures = self.of(namespace)
        figures.count("http_requests", route, str(status))
        figures.observe("http_seconds", seconds, route)

    def note_clock(self, credential: str, date: str, now_ms: int) -> None:
        """A client has said what time it is. HTTP dates have whole seconds, so less than two is nothing."""
        try:
            skew = parsedate_to_datetime(date).timestamp() - now_ms / 1000
        except (ValueError, OverflowError):
            return
        self.skews.pop(credential, None)
        if abs(skew) >= _SKEWED:
            self.skews[credential] = round(skew)
            if len(self.skews) > _MOST_SKEWS:
                self.skews.popitem(last=False)

    def note_refused_stream(self, namespace: str) -> None:
        self.of(namespace).count("streams_refused")
        self.streams_refused += 1

    async def text(self, namespace: str, app: Perdure, sight: Sight) -> bytes:
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
            gauges = await self._gauges(app, workers, sight)
        registry = CollectorRegistry()
        registry.register(_Collected(gauges, (self.of(namespace), self._process)))
        return generate_latest(registry)

    async def _gauges(self, app: Perdure, workers: Workers, sight: Sight) -> Gauges:
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
        heads = await store.query("queue_heads", namespace=store.namespace, now=now, limit=_MOST_QUEUES)
        return {
            "tasks": _by_situation(counts.status, sight.overview),
            "paused_tasks": {(reason,): number for reason, number in counts.reason.items()},
            "inbox_open": {(kind,): number for kind, number in inbox.items()},
            "effects_uncertain": {(): dict(inbox).get("effect", 0)},
            "lag_seconds": {(queue,): max(0.0, (now - since) / 1000) for queue, since in heads},
            "workers": alive,
            "store_bytes": {(): float((await store_facts(store)).bytes)},
            "store_read_seconds": {(): took},
            "streams": {(): sight.streams},
            "webhooks": states,
            "hook_lag_seconds": {(): max(0.0, (now - min(due)) / 1000) if due else 0.0},
            "loop_held_seconds_max": {(): self.held.take()},
        }


def _by_situation(statuses: Mapping[Status, int], overview: Unfinished) -> dict[Labels, float]:
    """Of open tasks that the overview did not look at, only the status is known."""
    seen = Counter[tuple[str, str]]((one.task.status, one.situation.kind) for one in overview.items)
    found: dict[Labels, float] = {}
    for status, number in statuses.items():
        told = {situation: count for (of, situation), count in seen.items() if of == status}
        if status in FINISHED:
            told = {status: number}
        found |= {(status, situation): count for situation, count in told.items()}
        if (rest := number - sum(told.values())) > 0:
            found[status, OTHER] = rest
    return found


class _Collected:
    """The methods that Prometheus' own library calls."""

    def __init__(self, gauges: Gauges, figures: Sequence[Figures]) -> None:
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
                for figures in self._figures:
                    for labels, number in figures.counters[metric.name].items():
                        counter.add_metric(labels, number)
                yield counter
            else:
                histogram = HistogramMetricFamily(name, metric.says, labels=metric.labels)
                for figures in self._figures:
                    for labels, buckets, total in figures.buckets_of(metric.name):
                        histogram.add_metric(labels, buckets, total)
                yield histogram
