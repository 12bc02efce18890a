"""One call of `perdure`: which store, how to answer, and the app once a command needs it."""

from __future__ import annotations

import os
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any, TextIO

import click

from perdure.cli.output import blocks as drawing
from perdure.cli.output import json_values as values

if TYPE_CHECKING:
    from perdure._app import Perdure
    from perdure._store import Store
    from perdure._tasks import Tasks


class Invocation:
    """What the options of every command said; commands get it by `@click.pass_obj`."""

    def __init__(self) -> None:
        self.store_url: str | None = None
        self.namespace = "default"
        self.json = False
        self.no_color = False
        self._app: Perdure | None = None

    @property
    def app(self) -> Perdure:
        """The app, opened by the first command that asks. Nothing is made on disk before a write."""
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
    def store(self) -> Store:
        """The store of the app."""
        from perdure._tasks import store_of

        return store_of(self.app.tasks)

    @property
    def place(self) -> str:
        """Where the store is, as a person would name it."""
        return self.store.place

    @property
    def now(self) -> datetime:
        """The moment by the clock the store goes by."""
        from perdure._ground.clock import moment

        return moment(self.store.clock.now_ms())

    @property
    def may_colour(self) -> bool:
        return not self.no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    # ── answering ───────────────────────────────────────────────────────────────────────────────

    def answer(self, value: Any, *blocks: drawing.Block) -> None:
        """Say what came out: `value` as JSON with --json, else `blocks` for a person.

        Raises:
            NotFound: --store named a file that is not there, and nothing has made it.
        """
        self.require_store()
        if self.json:
            out = sys.stdout
            print(values.as_json(value, indent=2 if out and out.isatty() else None, ascii=not _can_write_all(out)))
        else:
            drawing.draw(blocks, may_colour=self.may_colour)

    def answer_items(self, items: Any, *blocks: drawing.Block, cursor: str | None = None) -> None:
        """Like `answer`, for a list: `cursor` says where the rest begins."""
        self.answer({"items": list(items), "cursor": cursor}, *blocks)

    def note(self, text: str) -> None:
        """A remark beside the answer, for people only."""
        if not self.json and sys.stderr is not None:
            print(drawing.safe_lines(text), file=sys.stderr)

    def require_store(self) -> None:
        """
        Raises:
            NotFound: --store names a file that is not there.
        """
        if self._app is None or self.store_url is None or self.store.address.engine != "sqlite":
            return
        target = self.store.address.target
        if not os.path.lexists(target):
            from perdure.errors import NotFound

            do = "mend the path after --store; `perdure open` or the first program that writes there makes a new store"
            raise NotFound("store", target, os.path.dirname(target) or ".", do=do)

    # ── end ─────────────────────────────────────────────────────────────────────────────────────

    def close(self, after: BaseException | None = None) -> None:
        """Give back the leases this process took; an error on the way out does not hide the first one."""
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
    """What perdure logs may quote a record, so it is made safe for the terminal like everything else."""
    import logging

    class Warnings(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if sys.stderr is None:
                return
            print(drawing.safe_lines(f"perdure: {record.levelname.lower()}: {record.getMessage()}"), file=sys.stderr)

    logger = logging.getLogger("perdure")
    if not logger.handlers:
        logger.addHandler(Warnings(logging.WARNING))
        logger.propagate = False
