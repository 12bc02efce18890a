"""Generate, list and rotate the keys that seal records."""

from __future__ import annotations

import os

import click

from perdure.cli.base import Invocation, VerbGroup
from perdure.cli.output import Cell, Line, Table, line


@click.group(cls=VerbGroup)
def command() -> None:
    """Generate, list and rotate the keys that seal records.

    PERDURE_KEY names the keys: env:NAME, file:/path, keyring:service/user or the key itself, separated by commas.
    perdure seals new records with the first key and opens records with all of them. With the word sealed-only in the
    list, perdure treats a record that is not sealed as damaged.
    """


@command.command("generate")
@click.option("--id", "key_id", metavar="NAME", help="The key's id (default: a random id).")
@click.option(
    "--out",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write the key to a new file that only you can read (default: print it).",
)
@click.pass_obj
def generate(call: Invocation, key_id: str | None, out: str | None) -> None:
    """Generate a key. perdure prints it once and does not store it. Without it, the records it seals cannot be read."""
    from perdure._ground.secrets import crypto

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
    call.answer({"id": name, "file": out}, line(f"key {name} is in {out}; to use it, set PERDURE_KEY=file:{out}"))


@command.command("list")
@click.pass_obj
async def list_(call: Invocation) -> None:
    """List the keys that seal records, and the keys that PERDURE_KEY names."""
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
        Table(("key", "records", "saved workspaces", ""), rows)
        if rows
        else line("PERDURE_KEY names no key, and no record is sealed")
    )
    call.answer({"items": items, "unsealed": plain}, table, line(f"{plain:,} records are not sealed"))


def _about(item: dict[str, object]) -> Cell:
    if not item["is_here"]:
        return Cell("missing", "failed")
    if item["is_current"]:
        return Cell("current", "completed")
    return Cell("" if item["records"] or item["cuts"] else "no longer needed", "faint")


@command.command("rotate")
@click.option("--to-none", is_flag=True, help="Unseal all records.")
@click.pass_obj
async def rotate(call: Invocation, to_none: bool) -> None:
    """Seal every record with the first key of PERDURE_KEY, while tasks keep running.

    Keep the old key in the list (PERDURE_KEY=NEW,OLD) until rotate says that it is no longer needed. Exit code 1 when
    some records could not be sealed again; rotate lists them.
    """
    from perdure._tasks import rotate as reseal

    store = call.store
    if to_none:
        store.ring.current = None
    elif store.ring.current is None:
        raise click.UsageError("there is no key to seal records with: set PERDURE_KEY, or give --to-none")
    done = await reseal(store)
    left = {name: count for name, count in done.in_use.items() if name != done.key}
    stuck = [{"record": one.record, "why": one.why} for one in done.stuck]
    under = f"under {done.key}" if done.key else "unsealed"
    blocks: list[Line | Table] = [
        line(f"{done.resealed:,} records sealed again, {done.in_use.get(done.key, 0):,} {under}")
    ]
    for name in store.ring.ids:
        if name != done.key and name not in left:
            blocks.append(line(f"key {name} is no longer needed"))
    if left:
        named = ", ".join(f"{count:,} {f'under {name}' if name else 'unsealed'}" for name, count in left.items())
        blocks.append(line(Cell("left: ", "failed"), f"{named}; stop the processes that use it, and rotate again"))
    if stuck:
        blocks.append(Table(("record", "why"), [(each["record"], each["why"]) for each in stuck], "cannot be opened"))
    call.answer({"key": done.key, "resealed": done.resealed, "in_use": done.in_use, "stuck": stuck}, *blocks)
    if not done.is_done:
        raise click.exceptions.Exit(1)
