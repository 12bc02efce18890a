"""Pydantic AI's own suite for workspaces, on commands that perdure keeps."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.workspaces import WorkspaceBackend, WorkspaceRef
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite

import perdure
from perdure import Perdure, durable
from perdure.integrations.pydantic_ai import PerdureWorkspace


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class TestPerdureWorkspace(WorkspaceBackendSuite):
    @pytest.fixture
    def has_real_posix_shell(self) -> bool:
        return True

    @pytest.fixture
    async def app(self, folder: Path) -> AsyncIterator[Perdure]:
        async with Perdure(f"sqlite://{folder}/p.db") as app:
            yield app

    @pytest.fixture
    def fresh_backend(self, app: Perdure, tmp_path: Path) -> Callable[[], WorkspaceBackend]:
        return lambda: PerdureWorkspace(app, tmp_path)

    @pytest.fixture
    def destructive_backend(self, app: Perdure, tmp_path: Path) -> Callable[[], WorkspaceBackend]:
        def make() -> WorkspaceBackend:
            (tmp_path / "other").mkdir(exist_ok=True)
            return PerdureWorkspace(app, tmp_path / "other", task_id="other")

        return make

    @pytest.fixture
    async def backend(self, app: Perdure, tmp_path: Path) -> WorkspaceBackend:
        return PerdureWorkspace(app, tmp_path, task_id="ws")

    @pytest.fixture
    def attach_backend(self, app: Perdure, tmp_path: Path) -> Callable[[WorkspaceRef], WorkspaceBackend]:
        def attach(ref: WorkspaceRef) -> WorkspaceBackend:
            place = tmp_path / "other" if ref.id == "other" else tmp_path
            return PerdureWorkspace(app, place, task_id=ref.id)

        return attach

    @pytest.fixture
    def destroy_environment(self) -> Callable[[WorkspaceBackend], Awaitable[None]]:
        async def destroy(backend: Any) -> None:
            shutil.rmtree(await backend.working_dir())

        return destroy


async def test_a_repeated_effect_finds_its_command(folder: Path, tmp_path: Path) -> None:
    asked: list[str] = []
    async with Perdure(f"sqlite://{folder}/p.db") as app:
        workspace = PerdureWorkspace(app, tmp_path, task_id="ws")

        async def build() -> str:
            asked.append("build")
            told = await workspace.run("echo x >> count; cat count", shell=True)
            if len(asked) == 1:  # as when the process dies before its record of the outcome
                raise ConnectionError("away")
            return told.stdout

        @durable
        async def work() -> str:
            return await perdure.call(build, name="build", kind="effect", keyed=True)

        assert await app.run("w", work) == "x\n"
    assert len(asked) == 2
