"""Lines about a task's surroundings: cutting a workspace, saving, planning, restoring."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from perdure._tasks import store_of
from perdure.bench.figures import Figure, figure_of
from perdure.bench.rounds import middle_ms, middle_ms_of, take_turns
from perdure.bench.stage import Plot

if TYPE_CHECKING:
    from perdure._runtime import Workspace

_EDITS = 10


async def workspace(plot: Plot, quick: bool) -> list[Figure]:
    """Cut a folder in which nothing has changed, and again after ten edits, beside a walk through the folder."""
    from perdure._runtime import Workspace

    count = 1_000 if quick else 10_000
    root = _folder_of(plot.folder / "work", count)
    shop = Workspace(root, plot.folder / "cuts")
    shop.cut()
    shop.cut()  # from now on every file counts as unchanged since the cut before
    rounds = 3 if quick else 7
    numbers = iter(range(1_000_000))

    def edited() -> float:
        for place in range(_EDITS):
            (root / f"d{place}" / f"f{place}").write_text(f"edit {next(numbers)}", encoding="utf-8")
        return _ms(shop.cut)

    unchanged = await take_turns(rounds, {"floor": lambda: _ms(lambda: _walk(root)), "ours": lambda: _ms(shop.cut)})
    edits = await take_turns(rounds, {"floor": lambda: _ms(lambda: _walk(root)), "ours": edited})
    restored = await take_turns(
        2 if quick else 5,
        {"floor": lambda: _ms(lambda: _copied(root, plot.folder)), "ours": lambda: _restored(shop, plot.folder)},
    )
    shutil.rmtree(root)
    shutil.rmtree(shop.home)
    walk, copy = "every file found and looked at, by os.walk and lstat", "shutil.copytree of the same"
    return [
        figure_of("workspace", f"cut of {count:,} files, nothing changed", "ms", unchanged, floor_is=walk),
        figure_of("workspace", f"cut of {count:,} files, {_EDITS} edits", "ms", edits, floor_is=walk),
        figure_of("workspace", f"{count:,} files put elsewhere", "ms", restored, floor_is=copy),
    ]


async def saving(plot: Plot, quick: bool) -> list[Figure]:
    """Save, plan and restore an environment of forty variables and a few values."""
    from perdure._runtime import Continuity

    times, rounds = (5, 3) if quick else (30, 7)
    figures = []
    async with plot.app() as app:
        task = await app.tasks.open("bench-save", state={"phase": 1})
        rt = Continuity(store_of(app.tasks), task.id, task.uid)
        rt.env = {f"VARIABLE_{number}": "value" * 5 for number in range(40)}
        rt.variables["plan"] = list(range(100))
        await rt.save()
        acts: dict[str, Callable[[], Awaitable[object]]] = {"save": rt.save, "plan": rt.plan, "restore": rt.restore}
        for what, act in acts.items():
            found = await take_turns(
                rounds,
                {
                    "floor": lambda: middle_ms(plot.bare.commit, times),
                    "ours": lambda act=act: middle_ms_of(act, times),  # type: ignore[misc]
                },
            )
            figures.append(
                figure_of("saving", f"{what} of what surrounds a task", "ms", found, floor_is=plot.bare.name)
            )
    return figures


def _folder_of(root: Path, count: int) -> Path:
    for number in range(count):
        path = root / f"d{number % 100}" / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d" % number * 400)
    return root


def _walk(root: Path) -> int:
    return sum(os.lstat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(root) for name in names)


def _copied(root: Path, folder: Path) -> None:
    shutil.copytree(root, folder / "copy", symlinks=True)
    shutil.rmtree(folder / "copy")


def _restored(shop: Workspace, folder: Path) -> float:
    cut = shop.cut()
    taken = _ms(lambda: shop.restore(cut.id, folder / "elsewhere").done())
    shutil.rmtree(folder / "elsewhere")
    return taken


def _ms(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1000
