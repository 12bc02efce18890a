"""Traces: one per task, a span for each attempt and call, and nothing of what agents wrote."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from perdure._ground.traces import ids_of, traceparent
from tests.support.programs import run

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import asyncio, json, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from perdure import Perdure, durable, effect, pause, step

spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)
inside, apps = [], []

@step
async def search(topic):
    inside.append(trace.get_current_span().get_span_context())
    return "MARKER"

@effect
async def pay(cents):
    return "MARKER"

@durable
async def helper():
    return 1

@durable
async def order(topic):
    await search(topic)
    await apps[0].start("child", helper)
    await pay(5)
    await pause.approval("MARKER?")
    raise ValueError("MARKER")

async def main():
    async with Perdure() as app:
        apps.append(app)
        await app.run_until_paused("order-1", order, "MARKER")
        await (await app.tasks.handle("order-1")).approve(by="ada")
        try:
            await app.run_until_paused("order-1", order, "MARKER")
        except Exception:
            pass
        uid = (await app.tasks.get("order-1")).uid
        await app.run("child", helper)
    found = [json.loads(span.to_json()) for span in spans.get_finished_spans()]
    print(json.dumps({"uid": uid, "spans": found, "inside": [f"{one.trace_id:032x}" for one in inside]}))

asyncio.run(main())
"""


@pytest.mark.req("R146")
def test_a_task_is_one_trace_with_a_span_for_each_attempt_and_call(tmp_path: Path):
    import json

    (tmp_path / "traced.py").write_text(PROGRAM)
    told = json.loads(run([sys.executable, "traced.py"], tmp_path))
    trace = f"{ids_of(told['uid'])[0]:032x}"
    of_child = [span for span in told["spans"] if span["name"].endswith(" helper")]
    assert [[link["context"]["trace_id"] for link in span["links"]] for span in of_child if span["links"]] == [
        [f"0x{trace}"]
    ]
    told["spans"] = [span for span in told["spans"] if span["context"]["trace_id"] == f"0x{trace}"]
    assert told["inside"] == [trace]  # what an HTTP client in the step would send along
    names = [span["name"] for span in told["spans"]]
    attempts = [name for name in names if name.startswith("attempt ")]
    assert len(attempts) == 2
    assert sum("search" in name for name in names) == 1 and sum("pay" in name for name in names) == 1
    assert any("approval" in name for name in names)
    assert "MARKER" not in json.dumps(told["spans"])
    ids = {span["context"]["span_id"] for span in told["spans"] if span["name"].startswith("attempt ")}
    calls = [span for span in told["spans"] if not span["name"].startswith("attempt ")]
    assert all(span["parent_id"] in ids for span in calls)


def test_a_program_without_opentelemetry_never_imports_it(tmp_path: Path):
    code = (
        "import asyncio, sys\nfrom perdure import Perdure, durable, step\n"
        "@step\nasync def one(): return 1\n@durable\nasync def work(): return await one()\n"
        "async def main():\n    async with Perdure() as app: print(await app.run('a', work))\n"
        "asyncio.run(main())\nassert not any(name.startswith('opentelemetry') for name in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True).stdout == b"1\n"


def test_the_header_of_a_trace_is_well_formed():
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", traceparent("06gu" * 6))


def test_the_program_of_the_guide_prints_its_spans(tmp_path: Path):
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/guide/telemetry.md").read_text(), re.DOTALL)
    (tmp_path / "pasted.py").write_text(block)
    said = run([sys.executable, "pasted.py"], tmp_path)
    assert "attempt " in said and "search" in said
