"""One call of `perdure`: its store, its form of answer, and the app once a command needs it."""

from __future__ import annotations

import os
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any, TextIO

import click

from perdure._ground.encoding import json_values as values
from perdure.cli.output import blocks as parts
from perdure.cli.output import drawing

if TYPE_CHECKING:
    from perdure._app import Perdure
    from perdure._store import Store
    from perdure._tasks import Tasks
    from perdure.client import Transport


class Invocation:
    """The options of every command; a command gets it with `@click.pass_obj`."""

    def __init__(self) -> None:
        self.store_url: str | None = None
        self.namespace = "default"
        self.json = False
        self.no_color = False
        self._app: Perdure | None = None

    @property
    def app(self) -> Perdure:
        """The app, opened when a command first asks for it. Nothing is created on disk before a write."""
        if self._app is None:
            if self.store_url is not None and not self.store_url.strip():
                raise click.UsageError("--store is empty")
            from perdure._app import Perdure

            tell_warnings_safely()
            self._app = Perdure(self.store_url, namespace=self.namespace)
        return self._app

    @property
    def tasks(self) -> Tasks:
        return self.app.tasks

    @property
    def server(self) -> Transport | None:
        """The server that the store is behind; None: the store itself is here."""
        found: Transport | None = getattr(self.app, "_transport", None)
        return found

    @property
    def store(self) -> Store:
        """The store of the app.

        Raises:
            InvalidInput: it is behind a server.
        """
        from perdure._tasks import store_of

        if self.server is not None:
            from perdure.errors import InvalidInput

            raise InvalidInput(
                f"this command needs the store itself, and {self.place} is a server",
                do="run it where the store is, with --store or PERDURE_URL naming the store",
            )
        return store_of(self.app.tasks)

    @property
    def place(self) -> str:
        """The place of the store, as a person would name it."""
        return self.store.place if self.server is None else self.server.url

    @property
    def now(self) -> datetime:
        """The current moment by the store's clock; through a server, by this machine's."""
        from perdure._ground.clock import from_environment, moment

        return moment((self.store.clock if self.server is None else from_environment()).now_ms())

    @property
    def user(self) -> str:
        """The user who runs the command. A server signs with the name of the API key instead."""
        return self.store.presence.user if self.server is None else ""

    async def job(self, path: str, body: Any = None) -> Any:
        """The result of a server's job, once it has ended; None when the store itself is here.

        Raises:
            PerdureError: the job has failed.
        """
        if self.server is None:
            return None
        from perdure.client import finish_job

        return await finish_job(self.server, path, body)

    @property
    def may_colour(self) -> bool:
        return not self.no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    # ── answering ───────────────────────────────────────────────────────────────────────────────

    def answer(self, value: Any, *blocks: parts.Block) -> None:
        """Print the answer: `value` as JSON with --json, else `blocks` for a person.

        Raises:
            NotFound: --store names a file that does not exist.
        """
        self.require_store()
        if self.json:
            out = sys.stdout
            print(values.as_json(value, indent=2 if out and out.isatty() else None, ascii=not _can_write_all(out)))
        else:
            drawing.draw(blocks, may_colour=self.may_colour)

    def answer_items(self, items: Any, *blocks: parts.Block, cursor: str | None = None) -> None:
        """Like `answer`, for a list; `cursor` is where the next page starts."""
        self.answer({"items": list(items), "cursor": cursor}, *blocks)

    def note(self, text: str) -> None:
        """Print a remark for people to stderr."""
        if not self.json and sys.stderr is not None:
            print(parts.safe_lines(text), file=sys.stderr)

    def require_store(self) -> None:
        """
        Raises:
            NotFound: --store names a file that does not exist.
        """
        if self._app is None or self.store_url is None or self.server is not None:
            return
        if self.store.address.engine != "sqlite":
            return
        target = self.store.address.target
        if not os.path.lexists(target):
            from perdure.errors import NotFound

            do = "correct the path after --store; `perdure open`, or a program that writes there, creates a new store"
            raise NotFound("store", target, os.path.dirname(target) or ".", do=do)

    # ── end ─────────────────────────────────────────────────────────────────────────────────────

    def close(self, after: BaseException | None = None) -> None:
        """Release the leases of this process. An error while closing does not hide the error `after`."""
        if self._app is None:
            return
        from perdure._ground.bridge import drive

        app, self._app = self._app, None
        try:
            drive(app.close())
        except Exception as error:
            if after is None:
                raise
            after.add_note(f"and the store could not be closed: {error}")


def _can_write_all(out: TextIO | None) -> bool:
    return out is not None and (out.encoding or "").lower().replace("-", "") == "utf8"


def tell_warnings_safely() -> None:
    """Print warnings of perdure's log in a form that is safe for the terminal, as they may quote a record."""
    import logging

    class Warnings(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if sys.stderr is None:
                return
            print(parts.safe_lines(f"perdure: {record.levelname.lower()}: {record.getMessage()}"), file=sys.stderr)

    logger = logging.getLogger("perdure")
    if not logger.handlers:
        logger.addHandler(Warnings(logging.WARNING))
        logger.propagate = False
