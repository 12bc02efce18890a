"""The model loop that most people paste first: killed half-way and run again, it repeats nothing."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTES = ["read the sources", "compare the numbers", "write the summary"]


@pytest.fixture(scope="module")
def fake_model() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fake_model", EXAMPLES / "fake_model.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def model_url() -> Iterator[str]:
    """A fake model in a process of its own, which the example's death does not touch."""
    command = [sys.executable, str(EXAMPLES / "fake_model.py"), "0", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield server.stdout.readline().strip()
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def _run(folder: Path, url: str, crash_at: str = "") -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "MODEL_URL": url, "PERDURE_URL": f"sqlite://{folder}/p.db", "PERDURE_CRASH_AT": crash_at}
    return subprocess.run(
        [sys.executable, str(EXAMPLES / "model_loop.py")],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.req("R66", "R116")
@pytest.mark.parametrize("place, again", [("effect.intended:2", 0), ("effect.done:2", 0), ("stream.flushed:4", 1)])
def test_killed_and_run_again_it_repeats_no_call(
    tmp_path: Path, model_url: str, fake_model: ModuleType, place: str, again: int
) -> None:
    killed = _run(tmp_path, model_url, place)
    assert killed.returncode == -9, killed.stderr
    ended = _run(tmp_path, model_url)
    assert ended.returncode == 0, ended.stderr
    assert "result: All 3 notes about it are written, and I am done." in ended.stdout
    assert "not repeated:" in ended.stdout and "not repeated: nothing" not in ended.stdout
    assert (tmp_path / "notes.txt").read_text().splitlines() == NOTES
    # Four turns; killed inside one of them, that one is asked once more, for its rest.
    assert asyncio.run(fake_model.Client(model_url).bill())["calls"] == 4 + again


@pytest.mark.req("R118")
def test_a_model_that_hangs_up_and_refuses_is_asked_for_the_rest(
    tmp_path: Path, model_url: str, fake_model: ModuleType
) -> None:
    client = fake_model.Client(model_url)
    asyncio.run(client.misbehave(drop=2, refuse=1))
    ended = _run(tmp_path, model_url)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "notes.txt").read_text().splitlines() == NOTES
    bill = asyncio.run(client.bill())
    assert bill["calls"] == 4 + 2
    # No word was said twice.
    assert bill["output_tokens"] == sum(len(f"TOOL write_note {note}".split()) for note in NOTES) + 11
