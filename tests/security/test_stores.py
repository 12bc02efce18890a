"""A store that was found, and not named, is opened only if it is this user's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perdure._ground.config import find_address
from perdure.cli import main
from perdure.errors import StoreRefused

NOBODY = 65534


@pytest.fixture
def below(tmp_path: Path) -> Path:
    """A folder to work in, below one in which others may write."""
    here = tmp_path / "shared" / "mine"
    here.mkdir(parents=True)
    return here


def plant(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have these be another user's."""
    if os.geteuid() == 0:
        os.chown(store, NOBODY, NOBODY, follow_symlinks=False)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: NOBODY)


@pytest.mark.req("R143")
def test_a_store_of_another_user_is_not_opened_unless_it_is_named(
    below: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = below.parent / ".perdure"
    store.mkdir()
    plant(store, monkeypatch)
    monkeypatch.chdir(below)
    monkeypatch.delenv("PERDURE_URL", raising=False)
    monkeypatch.delenv("SUDO_UID", raising=False)
    assert main(["tasks"]) == 7
    said = capsys.readouterr().err
    assert f"belongs to user {store.stat().st_uid}" in said and f"PERDURE_URL=sqlite://{store}/perdure.db" in said
    assert list(store.iterdir()) == []
    assert find_address(store / "perdure.db", {}).target == str(store / "perdure.db")
    assert find_address(None, {"PERDURE_URL": f"sqlite://{store}/perdure.db"}).target == str(store / "perdure.db")


@pytest.mark.parametrize("what", ["folder", "link", "file"])
def test_neither_the_folder_nor_a_link_nor_the_file_may_be_another_users(
    what: str, below: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = below.parent / ".perdure"
    if what == "link":
        (tmp_path / "another").mkdir()
        store.symlink_to(tmp_path / "another")
    else:
        store.mkdir()
        (store / "perdure.db").touch()
    plant(store / "perdure.db" if what == "file" else store, monkeypatch)
    with pytest.raises(StoreRefused):
        find_address(None, {}, below)


def test_root_by_sudo_is_at_home_in_the_users_own_store(below: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = below.parent / ".perdure"
    store.mkdir()
    owner = store.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    if owner == 0:
        os.chown(store, NOBODY, NOBODY)
    environ = {"SUDO_UID": str(store.stat().st_uid)}
    assert find_address(None, environ, below).target == str(store / "perdure.db")
    with pytest.raises(StoreRefused):
        find_address(None, {"SUDO_UID": "1"}, below)


def test_a_store_that_is_not_there_yet_is_ours_to_make(below: Path) -> None:
    assert find_address(None, {}, below).target == str(below / ".perdure" / "perdure.db")
