"""A program that works in a workspace swaps folders and files for links while perdure reads or writes there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perdure._runtime.workspace import cuts as workspace
from perdure._runtime.workspace import swap as workspace_swap
from perdure._runtime.workspace.cuts import Workspace
from perdure.errors import RestoreFailed


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "inner").mkdir(parents=True)
    (root / "inner" / "file").write_text("as it was")
    return root


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("the secret of another")
    return outside


@pytest.mark.req("R97", "R109")
def test_a_restore_does_not_walk_through_a_link_that_took_the_place_of_a_folder(
    root: Path, outside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Workspace(root, tmp_path / "cuts")
    cut = desk.cut().id
    (root / "inner" / "file").write_text("changed")
    prepare = workspace_swap.Swap.prepare

    def swap_then(*args: Any, **options: Any) -> Any:
        made = prepare(*args, **options)
        (root / "inner").rename(root / "aside")
        (root / "inner").symlink_to(outside)
        return made

    monkeypatch.setattr(workspace_swap.Swap, "prepare", swap_then)
    before = _looks(outside / "file")
    with pytest.raises(RestoreFailed):
        desk.restore(cut)
    assert (outside / "file").read_text() == "the secret of another" and os.listdir(outside) == ["file"]
    assert _looks(outside / "file") == before


def _looks(path: Path) -> tuple[int, int]:
    return path.stat().st_mode, path.stat().st_mtime_ns


def _link(root: Path, outside: Path) -> None:
    (root / "inner" / "file").unlink()
    (root / "inner" / "file").symlink_to(outside / "file")


def _folder(root: Path, outside: Path) -> None:
    (root / "inner").rename(root / "aside")
    (root / "inner").symlink_to(outside)


def _pipe(root: Path, outside: Path) -> None:
    (root / "inner" / "file").unlink()
    os.mkfifo(root / "inner" / "file")


@pytest.mark.req("R109")
@pytest.mark.parametrize("swap", [_link, _folder, _pipe])
def test_a_cut_reads_neither_through_a_link_nor_from_a_pipe(
    swap: Callable[[Path, Path], None], root: Path, outside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk = workspace.walk

    def walk_then(*args: Any, **options: Any) -> Any:
        found = walk(*args, **options)
        swap(root, outside)
        return found

    monkeypatch.setattr(workspace, "walk", walk_then)
    desk = Workspace(root, tmp_path / "cuts")
    cut = desk.cut().id
    monkeypatch.undo()
    _, files = desk.read(cut)
    assert b"inner/file" not in files
