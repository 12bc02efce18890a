"""Which store is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure._ground.config import Address, find_address
from perdure.errors import InvalidInput


@pytest.mark.parametrize(
    "given, meant",
    [
        ("sqlite:///a/p.db", Address("sqlite", "/a/p.db")),
        ("sqlite:////a/p.db", Address("sqlite", "/a/p.db")),
        ("sqlite:///a%20b/p.db", Address("sqlite", "/a b/p.db")),
        ("p.db", Address("sqlite", "/here/p.db")),
        (Path("x/p.db"), Address("sqlite", "/here/x/p.db")),
        ("postgres://u:p@h/d?x=1", Address("postgres", "postgresql://u:p@h/d?x=1")),
        ("postgresql://h/d", Address("postgres", "postgresql://h/d")),
        ("memory://x", Address("memory", "x")),
    ],
)
def test_an_address_names_an_engine_and_a_place(given, meant):
    assert find_address(given, {}, Path("/here")) == meant


@pytest.mark.parametrize("given", ["mysql://h/d", "sqlite://", ":memory:", "memory:", "sqlite:///:memory:"])
def test_an_address_of_no_store_we_know_is_refused(given):
    with pytest.raises(InvalidInput):
        find_address(given, {}, Path("/here"))


def test_without_an_address_the_environment_decides_then_the_nearest_folder_upwards(tmp_path):
    here = tmp_path / "a" / "b"
    here.mkdir(parents=True)
    assert find_address(None, {"PERDURE_URL": "memory://e"}, here) == Address("memory", "e")
    assert find_address(None, {"PERDURE_URL": ""}, here).target == str(here / ".perdure" / "perdure.db")
    (tmp_path / ".perdure").mkdir()
    assert find_address(None, {}, here).target == str(tmp_path / ".perdure" / "perdure.db")


def test_a_folder_that_was_removed_matters_only_to_what_is_looked_for_from_it(tmp_path, monkeypatch):
    here = tmp_path / "gone"
    here.mkdir()
    monkeypatch.chdir(here)
    here.rmdir()
    assert find_address("/a/p.db", {}) == find_address("sqlite:///a/p.db", {}) == Address("sqlite", "/a/p.db")
    assert find_address("postgresql://h/d", {}) == Address("postgres", "postgresql://h/d")
    for given in (None, "p.db", Path("x/p.db"), "sqlite://p.db"):
        with pytest.raises(InvalidInput, match="has been removed"):
            find_address(given, {})


def test_a_home_that_nobody_has_is_refused():
    for given in ("~nobody-has-this-name/p.db", Path("~nobody-has-this-name/p.db")):
        with pytest.raises(InvalidInput, match="no home folder"):
            find_address(given, {}, Path("/here"))
