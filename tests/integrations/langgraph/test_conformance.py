"""LangGraph's own conformance suite for checkpointers, whole: every engine, async and blocking methods."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.report import ProgressCallbacks

from perdure import Perdure
from perdure.integrations.langgraph import PerdureSaver


class BlockingSaver(BaseCheckpointSaver[str]):
    """The blocking methods of a PerdureSaver, behind the names that the suite calls."""

    def __init__(self, app: Perdure, *, prefix: str) -> None:
        super().__init__()
        self.inner = PerdureSaver(app, prefix=prefix)

    async def aput(self, *args: Any) -> Any:
        return self.inner.put(*args)

    async def aput_writes(self, *args: Any, **how: Any) -> None:
        self.inner.put_writes(*args, **how)

    async def aget_tuple(self, config: Any) -> Any:
        return self.inner.get_tuple(config)

    async def alist(self, config: Any, **how: Any) -> AsyncIterator[Any]:
        for found in self.inner.list(config, **how):
            yield found

    async def adelete_thread(self, thread_id: str) -> None:
        self.inner.delete_thread(thread_id)

    async def adelete_for_runs(self, run_ids: Any) -> None:
        self.inner.delete_for_runs(run_ids)

    async def acopy_thread(self, *threads: str) -> None:
        self.inner.copy_thread(*threads)

    async def aprune(self, thread_ids: Any, **how: Any) -> None:
        self.inner.prune(thread_ids, **how)


@pytest.mark.req("R150")
@pytest.mark.parametrize("kind", [PerdureSaver, BlockingSaver], ids=["async", "blocking"])
async def test_the_conformance_suite_passes_whole(shared_url: str, kind: Any) -> None:
    seen: list[tuple[str, str, bool]] = []

    async with Perdure(shared_url) as app:

        @checkpointer_test(name=f"{kind.__name__} {shared_url[:8]}")
        async def checkpointer() -> AsyncGenerator[BaseCheckpointSaver[str], None]:
            yield kind(app, prefix=f"lg{len(seen)}")

        note = ProgressCallbacks(
            on_test_result=lambda capability, test, passed, error: seen.append((capability, test, passed))
        )
        report = await validate(checkpointer, progress=note)
    failures = {name: result.failures for name, result in report.results.items() if result.failures}
    assert failures == {}
    assert report.passed_all()
    assert len(seen) == 81
