"""Take a task to another machine: `export` puts it into a file, `bring_in` makes it one of this store.

A bundle holds the task with its journal, checkpoints, events, questions and memory, the recipes of what lived around
it, the workspace of its newest save, and, if it is sealed, what was in its shells. It is made for a reader that trusts
nothing: everything is checked before anything is written, and then all of it is written, or nothing.

Owns what goes in and what is checked. The file's form is in bundle_file.py, the rows in
perdure/_tasks/upkeep/transfer.py.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from perdure._durable import require_all_entries
from perdure._ground.bridge import Call
from perdure._ground.encoding import deltas as frames
from perdure._ground.secrets import envelope
from perdure._runtime.bundles.bundle_file import Bundle, Header, write
from perdure._runtime.bundles.shells_along import contents_of_shells, put_along
from perdure._runtime.context import mapping_for
from perdure._runtime.restore import CAUSE, PART, Saved, from_data, home_of
from perdure._runtime.secrets import Secret, redaction, references_in
from perdure._runtime.workspace import Objects, measure
from perdure._runtime.workspace import manifest as manifests
from perdure._store import Store
from perdure._tasks import (
    Steps,
    StopUpkeep,
    Task,
    Tasks,
    Tell,
    carried,
    check_history,
    current_row,
    dump,
    leave,
    payload,
    read_rows,
    rehearse,
    store_of,
    take_in,
)
from perdure._tasks import memory_values as memories
from perdure.errors import BundleRefused, Conflict, CutFailed, NotAllowed, PerdureError, RecordDamaged, SecretMissing

_SEALED = (
    "frame", "body", "entry", "arguments", "budget", "question", "answer", "value", "config", "pause", "progress",
    "result", "error",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Exported:
    """The parts of a task that an export included, and those it left out."""

    path: str
    task_id: str
    is_signed: bool
    moved: bool
    size: int
    notes: Sequence[str] = ()


async def export(
    tasks: Tasks,
    id: str,
    path: str | Path,
    *,
    move: bool = False,
    workspace: bool = True,
    version: str = "",
    tell: Tell | None = None,
) -> Exported:
    """Write a task to a file. With `move` it ends here first, so that it goes on in one place only.

    `tell` hears of each part, and stops the export by returning False, as long as nothing has been written.

    Raises:
        NotFound: there is no such task.
        LeaseHeld: it is to be moved, and an attempt is alive.
        NotAllowed: the bundle would hold a secret in clear; nothing was written, and the task goes on.
        JournalDamaged: its journal lacks an entry; nothing was written.
        Conflict: `tell` has stopped it; nothing was written, and the task goes on.
    """
    store, target = store_of(tasks), Path(path)
    task = await tasks.handle(id)
    steps = Steps(tell)
    saved = await _saved(task)
    _take(steps, "saves", id)
    cuts = _cuts(saved) if workspace else {}
    if store.ring.current is None:
        await _refuse_secrets(task, saved, cuts)
    line = (await current_row(store, task.id, task.uid)).line
    await require_all_entries(store, task.id, task.uid, line)  # the store that imports it does not need them
    _take(steps, "journal", id)
    if move:
        await leave(task)  # from here on it is carried through: the task lives in the bundle alone
    rows = await dump(store, task.uid)
    shells, untaken = await contents_of_shells(task) if store.ring.current is not None else ({}, [])
    await Call(lambda: put_along(store, task.uid, rows, shells))
    if not move:
        _take(steps, "rows", id)
    header = Header(
        task_id=task.id,
        uid=task.uid,
        namespace=store.namespace,
        host=store.presence.process.host,
        home=_home(),
        made_at=store.clock.now_ms(),
        perdure=version,
        moved=move,
        cuts=await Call(lambda: Objects(home_of(store)).cuts(list(cuts)) if cuts else {}),
        roots=[unit.recipe["root"] for unit in saved.units if unit.kind == "workspace"] if saved else [],
    )
    whole = await Call(lambda: _write(store, target, header, rows))
    size = await Call(lambda: target.stat().st_size)
    notes = [*_notes(whole, rows, saved, workspace, has_shells=bool(shells)), *untaken]
    return Exported(str(target), task.id, whole.is_signed, move, size, notes)


def _take(steps: Steps, part: str, id: str) -> None:
    try:
        steps.take(part, id)
    except StopUpkeep:
        raise Conflict(f"the export of task {id!r} was stopped", kept="the task; no bundle was written") from None


def _home() -> str:
    return os.path.expanduser("~")


def _write(store: Store, target: Path, header: Header, rows: Mapping[str, Any]) -> Header:
    body = msgspec.msgpack.encode(rows)
    with tempfile.TemporaryFile() as pack:
        if header.cuts:
            Objects(home_of(store)).pack(list(header.cuts), pack)
            pack.seek(0)
        return write(target, header, [("rows", body)], pack, store.ring)


def _notes(
    header: Header, rows: Mapping[str, Any], saved: Saved | None, workspace: bool, *, has_shells: bool
) -> list[str]:
    notes = []
    if not header.is_signed:
        notes.append("the store has no key, so the bundle is not sealed: its checksum shows damage, not forgery")
    if not header.moved and rows["tasks"][0]["status"] not in ("completed", "cancelled"):
        notes.append("the task goes on here too; --move ends it here")
    if saved is None:
        travels = "only what is in its shells" if has_shells else "nothing of it"
        notes.append(f"nothing was saved of what lives around the task, so {travels} travels")
    elif workspace and not header.cuts and header.roots:
        notes.append("the workspace's cut is not on this machine, so it does not travel")
    return notes


async def _saved(task: Task) -> Saved | None:
    found = await carried(task, PART, cause=CAUSE)
    return from_data(found[1], found[0].id) if found is not None else None


def _cuts(saved: Saved | None) -> dict[str, str]:
    units = saved.units if saved is not None else []
    return {unit.recipe["cut"]: unit.recipe["root"] for unit in units if unit.kind == "workspace"}


# ── no secret in clear ───────────────────────────────────────────────────────────────────────────


async def _refuse_secrets(task: Task, saved: Saved | None, cuts: Mapping[str, str]) -> None:
    """A bundle that is not sealed must hold no secret that is known, nor a file that looks like one."""
    for reference in references_in(msgspec.to_builtins(saved.units, enc_hook=str) if saved else []):
        try:
            Secret.parse(reference).value()  # from now on it is known, and looked for
        except SecretMissing:
            continue
    found = await _in_records(task)
    for cut in cuts:
        found += await Call(lambda cut=cut: _in_files(Objects(home_of(store_of(task)), store_of(task).ring), cut))  # type: ignore[misc]
    if found:
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        raise NotAllowed(
            f"the bundle would hold secrets in clear: {'; '.join(found[:5])}{more}",
            kept="the task as it is; nothing was written",
            do="give the store a key (perdure keys), which seals the bundle, or use --no-workspace",
        )


async def _in_records(task: Task) -> list[str]:
    found: set[str] = set()
    async for checkpoint in task.checkpoints():
        found.update(f"{name} in a checkpoint" for name in redaction.known_in(repr(checkpoint).encode()))
    for table, rows in (await dump(store_of(task), task.uid)).items():
        for row in rows:
            for column in _SEALED:
                if isinstance(row.get(column), str) and row[column].startswith("\\x"):
                    plain = _plain(store_of(task), task.uid, payload(row[column]), _place(table, row))
                    found.update(f"{name} in {table}" for name in redaction.known_in(plain))
    return sorted(found)


def _place(table: str, row: Mapping[str, Any]) -> int:
    """The place that a record of this table is sealed for."""
    return int(row["position"]) if table == "journal" else 0


def _plain(store: Store, uid: str, data: bytes, place: int) -> bytes:
    try:
        return envelope.unseal(data, kind=envelope.kind_of(data), bound_to=uid, ring=store.ring, place=place)
    except PerdureError:
        return data  # a chunk, or damaged: looked at as it is


def _in_files(objects: Objects, cut: str) -> list[str]:
    files = objects.files(cut)
    paths = {oid: path for path, (_, oid) in files.items()}
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for oid, content in objects.contents(cut, list(paths), Path(folder)):
            data = content.read_bytes()
            content.unlink()
            if redaction.known_in(data) or redaction.holds_a_token(data):
                found.append(f"the file {os.fsdecode(paths[oid])}")
    return found


# ── taking in ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import, and its origin."""

    task_id: str
    host: str
    is_signed: bool
    is_copy: bool  # it may still be going on where it came from, so it is paused
    paths: Mapping[str, str]
    workspace: bool
    notes: Sequence[str] = ()
    is_trusted: bool = True  # False: its recipes start, contact and change nothing


async def bring_in(
    tasks: Tasks,
    path: str | Path,
    *,
    paths: Mapping[str, str] | None = None,
    unsigned: bool = False,
    trust: bool = False,
) -> Imported:
    """Make the task of a bundle one of this store; `paths` says where folders of there are here.

    An unsigned bundle is data only: the task comes in paused, and nothing its recipes and fingerprints name
    is started, contacted or looked at. `trust` says that the caller knows who made it.

    Raises:
        BundleRefused: it is damaged, altered, newer, unsafe, or not signed though this store has a key.
        KeyMissing: it is sealed with a key that is not here.
        AlreadyExists: the task is here.
        In each case nothing was written.
    """
    store = store_of(tasks)
    with await Call(lambda: Bundle(Path(path), store.ring, trust=trust)) as bundle:
        header = bundle.header
        if store.ring.current is not None and not header.is_signed and not (unsigned or trust):
            raise BundleRefused(
                str(path),
                "it is not signed, and this store has a key",
                do="export it from a store with the key, or take it as it is with --unsigned",
            )
        rows = await Call(lambda: _rows(bundle))
        damaged = await Call(lambda: _check_rows(store, bundle, rows))
        where = mapping_for(header.home, _home(), paths or {})
        origin = {
            "host": header.host, "made_at": header.made_at, "signed": header.is_signed, "trusted": bundle.is_trusted,
        }  # fmt: skip
        try:
            await rehearse(store, rows, origin=origin, paths=where)
        except RecordDamaged as error:
            raise BundleRefused(str(path), f"{error.record}: {error.problem}") from None
        known = await store.query("get_task_by_uid", uid=header.uid)
        taken = await store.query("get_task", namespace=store.namespace, id=header.task_id)
        has_workspace = False
        if not known and not taken:
            has_workspace = await Call(lambda: _take_workspace(store, bundle))
        id = await take_in(store, rows, origin=origin, paths=where)
        notes = [*damaged]
        if not header.is_signed:
            notes.append("it is not signed, so an alteration would not be seen")
        if not bundle.is_trusted:
            notes.append(
                "so it is data only, and paused: --trust at the import lets its recipes start and change things"
            )
        return Imported(
            id, header.host, header.is_signed, not header.moved, where, has_workspace, notes, bundle.is_trusted
        )


def _rows(bundle: Bundle) -> dict[str, list[dict[str, Any]]]:
    header = bundle.header
    try:
        return read_rows(bundle.section("rows"), uid=header.uid, id=header.task_id, namespace=header.namespace)
    except ValueError as error:  # msgspec's own are such
        raise BundleRefused(str(bundle.path), f"its rows cannot be read: {error}") from None


def _check_rows(store: Store, bundle: Bundle, rows: Mapping[str, list[dict[str, Any]]]) -> list[str]:
    """The history is whole, and every record can be opened here. Checkpoints that were damaged before are named:
    the seal says that the bundle is as it was made, and a restore passes them over."""
    damaged: list[str] = []
    scales = _Scales(store, bundle)
    try:
        check_history(store, dict(rows))
        for table, found in rows.items():
            for row in found if table != "chunks" else ():
                try:
                    scales.open_all(table, row)
                except RecordDamaged:
                    if table != "checkpoints":
                        raise
                    damaged.append(f"checkpoint {row['seq']} was damaged before it was exported")
        for row in rows["checkpoints"]:
            scales.weigh_state(row, rows["chunks"])
    except RecordDamaged as error:
        raise BundleRefused(str(bundle.path), f"{error.record}: {error.problem}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise BundleRefused(str(bundle.path), f"its rows are not a task's: {type(error).__name__}") from None
    return damaged


class _Scales:
    """Opens the records of a bundle, and adds up what they unpack to."""

    def __init__(self, store: Store, bundle: Bundle) -> None:
        self._store, self._bundle, self._total = store, bundle, 0

    def open_all(self, table: str, row: Mapping[str, Any]) -> None:
        if table == "checkpoints" and row["chunks"]:
            return  # its frame only names chunks
        uid = self._bundle.header.uid
        bound = uid if table != "memory" else memories.bound_to(row["namespace"], row["key"])
        for column in _SEALED:
            value = row.get(column)
            if isinstance(value, str) and value.startswith("\\x"):
                self._open(payload(value), bound, _place(table, row))

    def weigh_state(self, row: Mapping[str, Any], chunks: Sequence[Mapping[str, Any]]) -> None:
        """The size of a checkpoint once it is put together: a small delta can produce a large state."""
        data = payload(row["frame"])
        if row["chunks"]:
            owner = data.decode("ascii", "replace")
            parts = sorted((part for part in chunks if part["owner"] == owner), key=lambda part: part["n"])
            data = b"".join(payload(part["body"]) for part in parts)
        try:
            kind = envelope.kind_of(data)
            made = envelope.length_of(data)
            if kind == "delta":
                self._refuse_if_over(made)
                made = frames.length_of(self._open(data, self._bundle.header.uid))
        except RecordDamaged:
            return  # named already, and passed over when it is read
        self._refuse_if_over(made)

    def _open(self, data: bytes, bound: str, place: int = 0) -> bytes:
        self._total += envelope.length_of(data)
        self._refuse_if_over(self._total)
        kind, ring = envelope.kind_of(data), self._store.ring
        return envelope.unseal(data, kind=kind, bound_to=bound, ring=ring, place=place)

    def _refuse_if_over(self, size: int) -> None:
        if size > self._bundle.allowance:
            raise BundleRefused(
                str(self._bundle.path),
                f"it is not signed, and its records unpack to more than {self._bundle.allowance:,} bytes",
                do="export it from a store with a key, or say --trust if you know who made it",
            )


def _take_workspace(store: Store, bundle: Bundle) -> bool:
    """Take the workspace's objects in, after they were all looked at in a place apart."""
    home, cuts = home_of(store), bundle.header.cuts
    if not cuts:
        return False
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    apart = Path(tempfile.mkdtemp(prefix="incoming-", dir=home))
    try:
        with (apart / "pack").open("w+b") as pack:
            bundle.copy_pack(pack)
            pack.seek(0)
            measure(pack, most=bundle.allowance)
            pack.seek(0)
            looked_at = Objects(apart, store.ring)
            looked_at.unpack(pack, cuts)
            for cut in cuts:
                _check_cut(looked_at, cut, apart)
            pack.seek(0)
            for cut in cuts:
                Objects(home).note_owner(cut, bundle.header.uid)
            Objects(home).unpack(pack, cuts)
    except CutFailed as error:
        raise BundleRefused(str(bundle.path), f"its workspace: {error.problem}") from None
    except ValueError as error:
        raise BundleRefused(str(bundle.path), f"its workspace: {error}") from None
    finally:
        shutil.rmtree(apart, ignore_errors=True)
    return True


def _check_cut(objects: Objects, cut: str, apart: Path) -> None:
    """Names stay inside, links point inside, contents are what they are called."""
    manifest = manifests.decode(objects.manifest(cut), cut)
    files = objects.files(cut)
    manifests.check(manifest, files, cut)
    scratch = apart / "looked-at"
    scratch.mkdir(exist_ok=True)
    links = [(path, oid) for path, (mode, oid) in files.items() if mode == "120000"]
    targets: dict[bytes, bytes] = {}
    for (path, _), (_, content) in zip(links, objects.contents(cut, [oid for _, oid in links], scratch), strict=True):
        if content.stat().st_size > manifests.LONGEST_LINK:
            raise CutFailed(f"cut {cut}", f"the link {os.fsdecode(path)!r} is longer than any", do="do not use it")
        targets[path] = content.read_bytes()
        content.unlink()
    manifests.check_links(manifest, targets, cut)
