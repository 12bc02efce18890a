"""A signal's handler that raises TimeoutError while perdure asks the system something: the error arrives as itself."""

from __future__ import annotations

import builtins
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from perdure._ground import config, ids
from perdure._ground.secrets import crypto
from perdure._store.sqlite import location

OWN = "the watchdog of the program"


@contextmanager
def alarm_in(module: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A signal arrives whenever this function is called, and its handler raises."""
    original = getattr(module, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        signal.raise_signal(signal.SIGUSR1)
        return original(*args, **kwargs)

    def ring(number: int, frame: object) -> None:
        raise TimeoutError(OWN)

    before = signal.signal(signal.SIGUSR1, ring)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(module, name, call)
            yield
    finally:
        signal.signal(signal.SIGUSR1, before)


def _start_of_this_process(folder: Path) -> object:
    return ids._start_of(os.getpid())


def _own_store(folder: Path) -> object:
    return config._own(folder, {})


def _key(folder: Path) -> object:
    return crypto._from_file(str(folder / "key"))


def _new_store(folder: Path) -> None:
    location.make_room(folder / "new" / "perdure.db")


def _kind_of_disk(folder: Path) -> object:
    return location._file_system(folder)


def _boot(folder: Path) -> object:
    ids.boot_id.cache_clear()
    return ids.boot_id()


@pytest.mark.parametrize(
    "asked, module, name",
    [
        (_start_of_this_process, builtins, "open"),
        (_boot, builtins, "open"),
        (lambda folder: ids.pid_ns(), os, "readlink"),
        (_own_store, os, "stat"),
        (_key, builtins, "open"),
        (_new_store, os, "open"),
        (_kind_of_disk, builtins, "open"),
    ],
    ids=["start", "boot", "namespace", "owner", "key", "new store", "file system"],
)
def test_a_timeout_of_a_signal_handler_is_not_taken_for_an_answer_of_the_system(
    asked: Callable[[Path], object], module: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").touch(mode=0o600)
    with pytest.raises(TimeoutError, match=OWN), alarm_in(module, name, monkeypatch):
        asked(tmp_path)
