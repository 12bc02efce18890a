"""Make keys, see which are in use, and change them."""

from __future__ import annotations

import os

import click

from perdure.cli.base import Invocation, VerbGroup
from perdure.cli.output import Cell, Line, Table, line


@click.group(cls=VerbGroup)
def command() -> None:
    """Make keys, see which are in use, and change them.

    PERDURE_KEY names the keys: env:NAME, file:/path, keyring:service/user or the key itself, separated by commas.
    The word sealed-only among them has records refused that are not sealed, as if they were damaged.
    The first seals what is written; all of them open what was.
    """


@command.command("generate")
@click.option("--id", "key_id", metavar="NAME", help="The key's id; one is made up otherwise.")
@click.option(
    "--out", type=click.Path(dir_okay=False), metavar="FILE", help="Write it to a new file only you can read."
)
@click.pass_obj
def generate(call: Invocation, key_id: str | None, out: str | None) -> None:
    """Make a new key. It is shown once and stored nowhere: without it, what it seals cannot be read."""
    from perdure._ground import crypto

    text = crypto.generate(key_id)
    name = text.partition(":")[0]
    if out is None:
        call.answer({"id": name, "key": text}, line(text))
        return
    try:
        with os.fdopen(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text + "\n")
    except OSError as error:
        raise click.UsageError(f"cannot write {out}: {error.strerror}") from None
    call.answer({"id": name, "file": out}, line(f"key {name} is in {out}; use it by PERDURE_KEY=file:{out}"))


@command.command("list")
@click.pass_obj
async def list_(call: Invocation) -> None:
    """List the keys that records are sealed with, and those at hand."""
    from perdure._runtime import keys_of_cuts
    from perdure._tasks import keys_in_use

    store = call.store
    counts, current = await keys_in_use(store), store.ring.current
    cuts = await keys_of_cuts(store)
    plain = counts.pop("", 0)
    items = [
        {
            "id": name,
            "records": counts.get(name, 0),
            "cuts": cuts[name],
            "is_here": name in store.ring.ids,
            "is_current": current is not None and name == current.id,
        }
        for name in dict.fromkeys([*store.ring.ids, *counts, *filter(None, cuts)])
    ]
    rows = [
        (Cell(str(item["id"]), "strong"), f"{item['records']:,}", f"{item['cuts']:,}", _about(item)) for item in items
    ]
    table = (
        Table(("key", "records", "workspace cuts", ""), rows) if rows else line("no key is at hand, and none is in use")
    )
    call.answer({"items": items, "unsealed": plain}, table, line(f"{plain:,} records are not sealed"))


def _about(item: dict[str, object]) -> Cell:
    if not item["is_here"]:
        return Cell("missing", "failed")
    if item["is_current"]:
        return Cell("current", "completed")
    return Cell("" if item["records"] or item["cuts"] else "no longer needed", "faint")


@command.command("rotate")
@click.option("--to-none", is_flag=True, help="Leave all records unsealed.")
@click.pass_obj
async def rotate(call: Invocation, to_none: bool) -> None:
    """Seal every record under the first key of PERDURE_KEY, beside tasks that go on.

    Give the old key after the new one until this says that it is no longer needed: PERDURE_KEY=NEW,OLD. Exit code 1
    when some records could not be sealed anew; they are named.
    """
    from perdure._tasks import rotate as reseal

    store = call.store
    if to_none:
        store.ring.current = None
    elif store.ring.current is None:
        raise click.UsageError("there is no key to seal records under: set PERDURE_KEY, or say --to-none")
    done = await reseal(store)
    left = {name: count for name, count in done.in_use.items() if name != done.key}
    stuck = [stuck._asdict() for stuck in done.stuck]
    under = f"under {done.key}" if done.key else "unsealed"
    blocks: list[Line | Table] = [
        line(f"{done.resealed:,} records sealed anew, {done.in_use.get(done.key, 0):,} {under}")
    ]
    for name in store.ring.ids:
        if name != done.key and name not in left:
            blocks.append(line(f"key {name} is no longer needed"))
    if left:
        named = ", ".join(f"{count:,} {f'under {name}' if name else 'unsealed'}" for name, count in left.items())
        blocks.append(line(Cell("left: ", "failed"), f"{named}; end the processes that use it, and rotate again"))
    if stuck:
        blocks.append(Table(("record", "why"), [(each["record"], each["why"]) for each in stuck], "cannot be opened"))
    call.answer({"key": done.key, "resealed": done.resealed, "in_use": done.in_use, "stuck": stuck}, *blocks)
    if not done.is_done:
        raise click.exceptions.Exit(1)
