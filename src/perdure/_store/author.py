"""The author of a write, where the writing process is not the one that asked: a server writes for its callers.

    with acting(Author("ada", key="k7", via="http", address="192.0.2.7", request="r-19")):
        await task.pause("hold on")

Every event, checkpoint, decision and value written inside the block names this author beside the process that wrote.
The author is read when a write is made up, in the caller's context, so it does not matter which thread commits it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from msgspec import Struct
from msgspec.structs import asdict

from perdure.errors import InvalidInput

# Characters of one part of an author. It is kept in every event.
_LONGEST = 500


class Author(Struct, frozen=True):
    """The person or program that a process writes for. Parts that are empty are not written."""

    user: str
    key: str = ""  # id of the credential, never the credential
    via: str = ""  # "http", "dashboard"
    address: str = ""  # network address the request came from
    request: str = ""  # id of the request
    mark: str = ""  # of a request that can be repeated: the mark by which its writes are found


_author: ContextVar[Author | None] = ContextVar("perdure author", default=None)
acting_author = _author.get  # who this context writes for; None when the process writes for itself


@contextmanager
def acting(author: Author) -> Iterator[None]:
    """Sign every write inside the block with `author`.

    Raises:
        InvalidInput: a part is not a string, is too long, or cannot be stored; or the user is empty.
    """
    token = _author.set(_checked(author))
    try:
        yield
    finally:
        _author.reset(token)


def _checked(author: Author) -> Author:
    if not isinstance(author, Author):
        raise InvalidInput(f"an author is an Author, not {type(author).__name__}")
    for name, text in asdict(author).items():
        if not isinstance(text, str):
            raise InvalidInput(f"the author's {name} is {type(text).__name__}, not str")
        if len(text) > _LONGEST:
            raise InvalidInput(f"the author's {name} has {len(text)} characters; at most {_LONGEST} are kept")
        if "\0" in text or not _is_unicode(text):
            raise InvalidInput(f"the author's {name} has characters that cannot be stored")
    if not author.user:
        raise InvalidInput("the author has no user", do='name one: Author("ada", …)')
    return author


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
