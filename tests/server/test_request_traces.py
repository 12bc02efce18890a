"""Requests are spans in the caller's trace, linked to the tasks that they are about."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from perdure._ground.traces import ids_of
from tests.support.programs import run

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import asyncio, json, sys
sys.path.insert(0, sys.argv[1])
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.support.http_server import make_key, request, serving

spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)

async def main():
    async with serving("memory://traced") as server:
        key = await make_key(server, "admin")
        task = await server.app_of("default").tasks.create("MARKER", state={"note": "MARKER"})
        for trace_id in ("a" * 32, "0" * 32, "nonsense"):
            sent = {"key": key, "headers": {"traceparent": f"00-{trace_id}-{'b' * 16}-01"}}
            await request(server, "GET", "/v1/tasks/MARKER", query="parts=MARKER", **sent)
            await request(server, "GET", "/v1/tasks/MARKER", **sent)
    print(json.dumps({"uid": task.uid, "spans": [json.loads(span.to_json()) for span in spans.get_finished_spans()]}))

asyncio.run(main())
"""


@pytest.mark.req("R146")
def test_a_request_is_a_span_in_its_callers_trace_and_names_no_task_but_by_a_link(tmp_path: Path):
    (tmp_path / "traced.py").write_text(PROGRAM)
    told = json.loads(run([sys.executable, "traced.py", str(ROOT)], tmp_path))
    seen = told["spans"]
    assert len(seen) == 6 and {span["name"] for span in seen} == {"GET /v1/tasks/{task}"}
    caller = [span["context"]["trace_id"] == f"0x{'a' * 32}" and span["parent_id"] == f"0x{'b' * 16}" for span in seen]
    assert caller == [True, True, False, False, False, False]  # what is no trace begins a new one
    assert [span["attributes"]["http.response.status_code"] for span in seen] == [400, 200] * 3
    task = f"0x{ids_of(told['uid'])[0]:032x}"
    assert [[link["context"]["trace_id"] for link in span["links"]] for span in seen] == [[], [task]] * 3
    assert "MARKER" not in json.dumps(seen)
