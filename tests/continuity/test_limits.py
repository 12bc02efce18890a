"""What is taken of a provider's allowance stays taken, whatever becomes of the process."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from perdure import Perdure
from perdure._runtime.kinds.limits import RateLimits
from perdure.errors import KeyMissing
from tests.continuity.restore_kit import KEY, again, runtime_of
from tests.support.processes import Link, nursery, say


async def take_seven(link: Link, url: str, key: str | None) -> None:
    """Never saves, never leaves."""
    async with Perdure(url, key=key) as app:
        limits = (await runtime_of(app)).rate_limits()
        limits.allow("llm", "my-key-1234", limit=10, seconds=3600)
        say(link, [limits.take("llm", "my-key-1234") for _ in range(7)])
        await asyncio.Event().wait()


@pytest.mark.req("R81")
@pytest.mark.parametrize("key", [None, KEY])
async def test_seven_of_ten_are_used_after_a_kill_though_nothing_was_saved(tmp_path: Path, key: str | None) -> None:
    url = f"sqlite://{tmp_path}/p.db"
    with nursery() as children:
        child = children.start(take_seven, url, key)
        assert child.heard() == [True] * 7
        child.kill()
    async with Perdure(url, key=key) as app:
        limits = (await again(app)).rate_limits()
        assert limits.left("llm", "my-key-1234") == 3
        limits.allow("llm", "my-key-1234", limit=10, seconds=3600)
        assert not limits.take("llm", "my-key-1234", count=4)
        assert limits.take("llm", "my-key-1234", count=3)
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert b"my-key-1234" not in written


@pytest.mark.req("R81")
async def test_going_back_to_a_checkpoint_gives_nothing_back(tmp_path: Path) -> None:
    async with Perdure(f"sqlite://{tmp_path}/p.db") as app:
        rt = await runtime_of(app)
        limits = rt.rate_limits()
        limits.allow("llm", limit=10, seconds=3600)
        limits.take("llm", count=2)
        cut = await rt.save()
        limits.take("llm", count=5)
        rt = await again(app)
        await rt.restore(cut.id)
        assert rt.rate_limits().left("llm") == 3


def test_several_take_from_one_allowance(tmp_path: Path) -> None:
    one, two = (RateLimits(path=tmp_path / "limits") for _ in range(2))
    one.allow("llm", limit=3, seconds=3600)
    assert [one.take("llm"), two.take("llm"), one.take("llm"), two.take("llm")] == [True, True, True, False]


async def test_with_a_key_the_counters_are_read_only_with_it(tmp_path: Path) -> None:
    async with Perdure(f"sqlite://{tmp_path}/p.db", key=KEY) as app:
        RateLimits(path=tmp_path / "limits", ring=app._store.ring).allow("telltale", limit=3, seconds=3600)
    assert b"telltale" not in (tmp_path / "limits").read_bytes()
    with pytest.raises(KeyMissing):
        RateLimits(path=tmp_path / "limits")
