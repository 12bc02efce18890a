"""Check the arguments that a task is made or looked for with: texts that can be stored, a status that exists.

Raises InvalidInput before anything is written.
"""

from __future__ import annotations

from functools import lru_cache
from typing import get_args

from perdure._model import FirstStatus, Status
from perdure.errors import InvalidInput


@lru_cache(maxsize=1024)
def is_storable(name: str) -> bool:
    """True if the text is valid; functions' names are checked again and again."""
    return name.isascii() and "\0" not in name


def check_texts(**texts: object) -> None:
    for name, text in texts.items():
        if text == "":
            continue
        if not isinstance(text, str):
            raise InvalidInput(f"{name} is {type(text).__name__}, not str")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidInput(f"{name} has characters that cannot be stored") from None
        if "\0" in text:
            raise InvalidInput(f"{name} has a NUL character")


def check_beginning(status: object) -> None:
    if status in get_args(FirstStatus):
        return
    check_status(status)
    verb = {"paused": "task.pause(…)", "failed": "task.fail(…)", "cancelled": "task.cancel()"}.get(
        str(status), "task.complete(…)"
    )
    raise InvalidInput(
        f"a task cannot begin as {status!r}; it begins as pending or running",
        do=f"create it, then call {verb}, which keeps why",
    )


def check_status(status: object) -> None:
    if status not in get_args(Status):
        raise InvalidInput(f"{status!r} is not a status", do=f"choose from {', '.join(get_args(Status))}")
