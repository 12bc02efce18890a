"""Cut a folder, and put a cut back.

A cut is everything in a folder at one moment, kept apart from it: contents in an object store of perdure's own,
modes, times and empty folders in a manifest. The user's repository is only read. Cutting again costs a walk when
nothing has changed, and what has changed otherwise.

Not kept: owners, extended attributes, hard links as such, sockets and devices (named in `left_out`).

Owns the walk from folder to cut and back. What belongs to a folder is in folder_walk.py, where cuts are kept in
objects.py, putting one in place in swap.py.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import msgspec

from perdure._ground.ids import new_uid
from perdure._ground.secrets import envelope
from perdure._ground.secrets.crypto import KeyRing
from perdure._runtime.workspace import manifest as manifests
from perdure._runtime.workspace import swap as swaps
from perdure._runtime.workspace.contents import Contents, Last, oid_at
from perdure._runtime.workspace.folder_walk import Walked, git_head, walk
from perdure._runtime.workspace.manifest import Entry, Manifest
from perdure._runtime.workspace.objects import Objects
from perdure._runtime.workspace.swap import Swap
from perdure.errors import CutFailed, KeyMissing, NotFound, RecordDamaged, RestoreFailed, TooLarge


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceCut:
    """A folder at one moment."""

    id: str
    root: str
    files: int
    size: int
    changed: int = 0  # contents that were new to the object store
    head: str | None = None
    left_out: tuple[str, ...] = ()


class Workspace:
    """One folder and its cuts; `home` is where they are kept, sealed if the ring has a key."""

    root: Path
    home: Path
    ignored: bool
    repositories: bool
    objects: Objects

    def __init__(
        self,
        root: Path | str,
        home: Path | str,
        *,
        ignored: bool = False,
        repositories: bool = False,
        ring: KeyRing | None = None,
    ) -> None:
        self.root, self.home = Path(root).absolute(), Path(home).absolute()
        self.ignored, self.repositories = ignored, repositories
        self._ring = ring or KeyRing()
        self.objects = Objects(self.home, self._ring)

    # ── cutting ─────────────────────────────────────────────────────────────────────────────────

    def cut(self) -> WorkspaceCut:
        """Keep the folder as it is now; once this returns, the cut outlives the process.

        Raises:
            CutFailed: no space, no git, no folder; earlier cuts are intact.
        """
        swaps.recover(self.home)
        try:
            return self._cut()
        except OSError as error:
            raise CutFailed(str(self.root), f"{error.filename or self.home}: {error.strerror}") from error

    def _cut(self) -> WorkspaceCut:
        began = time.time_ns()
        walked = walk(self.root, ignored=self.ignored, repositories=self.repositories, home=self.home)
        head = git_head(self.root)
        last = self._last()
        contents = Contents(self.root, self.home, walked, last.seen if last else (), self.objects.sealer)
        if last is not None and not contents.differ and self._manifest(walked, head) == last.manifest:
            return self._told(last.cut, walked, head)
        cut = new_uid(time.time_ns() // 1_000_000)
        written = self.objects.write(cut, contents, lambda: self._manifest(walked, head), last.files if last else "")
        manifest = self._manifest(walked, head)
        self._remember(Last(cut, written.files, contents.seen(began), manifest, self._key))
        return self._told(cut, walked, head, contents.new)

    def _manifest(self, walked: Walked, head: str | None) -> bytes:
        entries = [Entry(f.path, f.kind, f.mode, f.mtime_ns, f.size) for _, f in sorted(walked.found.items())]
        return manifests.encode(
            Manifest(
                root=str(self.root),
                entries=entries,
                ignored=sorted(walked.ignored),
                left_out=sorted(walked.left_out),
                with_ignored=self.ignored,
                with_repositories=self.repositories,
                head=head,
            )
        )

    def _told(self, cut: str, walked: Walked, head: str | None, changed: int = 0) -> WorkspaceCut:
        files = [found for found in walked.found.values() if found.kind != "folder"]
        left_out = tuple(f"{os.fsdecode(path)}: {why}" for path, why in walked.left_out)
        size = sum(found.size for found in files)
        return WorkspaceCut(
            id=cut, root=str(self.root), files=len(files), size=size, changed=changed, head=head, left_out=left_out
        )

    # ── putting back ────────────────────────────────────────────────────────────────────────────

    def read(self, cut: str) -> tuple[Manifest, Mapping[bytes, tuple[str, str]]]:
        """The checked contents of a cut.

        Raises:
            NotFound: there is no such cut here.
            CutFailed: it is damaged or unsafe.
        """
        if not self.objects.has(cut):
            raise NotFound("cut", cut, str(self.home), do="it is on the machine it was made on; a bundle carries it")
        manifest = manifests.decode(self.objects.manifest(cut), cut)
        files = self.objects.files(cut)
        manifests.check(manifest, files, cut)
        return manifest, files

    def restore(self, cut: str, into: Path | str | None = None) -> Swap:
        """Put a cut in place of what is in the folder (or in another, which must be new or empty).

        All of it is in place when this returns, or nothing has changed. The caller then calls `done()` on what is
        returned, or `undo()` to have the folder as it was. What git ignores, or ignored then, is left alone.

        Raises:
            NotFound, CutFailed: the cut cannot be read; nothing was touched.
            RestoreFailed: it could not be put in place; the folder is as it was.
        """
        swaps.recover(self.home)
        manifest, files = self.read(cut)
        target = Path(into).absolute() if into is not None else self.root
        if into is not None and target.exists() and any(target.iterdir()):
            raise RestoreFailed("the workspace", f"{target} is not empty")
        made: list[Path] = []
        try:
            made = swaps.make_root(target)
            now = walk(target, ignored=manifest.with_ignored, repositories=manifest.with_repositories, home=self.home)
            sealer = self.objects.sealer_of(cut)
            steps = swaps.steps_to(manifest, files, now, lambda found: oid_at(target, found, sealer))
            stage = swaps.make_stage(target)
        except OSError as error:
            raise RestoreFailed("the workspace", f"{error.filename}: {error.strerror}") from error
        try:
            self._fill(stage, cut, manifest, files, steps)
            swap = Swap.prepare(self.home, target, stage, steps, made)
        except BaseException as error:
            shutil.rmtree(stage, ignore_errors=True)
            swaps.unmake([os.fsencode(folder) for folder in made])
            if isinstance(error, OSError):
                raise RestoreFailed("the workspace", f"{error.filename}: {error.strerror}") from error
            raise
        swap.apply()
        return swap

    def _fill(
        self, stage: Path, cut: str, manifest: Manifest, files: Mapping[bytes, tuple[str, str]], steps: list[swaps.Step]
    ) -> None:
        """Everything that is to be put, ready in the stage with its mode and times."""
        entries = {entry.path: entry for entry in manifest.entries}
        puts = [(number, entries[step.path]) for number, step in enumerate(steps) if step.act == "put"]
        scratch = stage / "read"
        scratch.mkdir()
        contents = self.objects.contents(cut, [files[entry.path][1] for _, entry in puts], scratch)
        for (number, entry), (_, content) in zip(puts, contents, strict=True):
            ready = stage / "new" / str(number)
            if entry.kind == "link":
                os.symlink(content.read_bytes(), os.fsencode(ready))
                content.unlink()
            else:
                content.rename(ready)
                ready.chmod(entry.mode)
            os.utime(ready, ns=(entry.mtime_ns, entry.mtime_ns), follow_symlinks=False)

    # ── what the last cut saw ───────────────────────────────────────────────────────────────────

    @property
    def _memory(self) -> Path:
        of = f"{self.root}\0{self.ignored}\0{self.repositories}".encode(errors="surrogateescape")
        return self.home / "seen" / sha256(of).hexdigest()[:24]

    def _last(self) -> Last | None:
        try:
            told = envelope.unseal(self._memory.read_bytes(), kind="seen", bound_to=self._memory.name, ring=self._ring)
            found = msgspec.msgpack.decode(told, type=Last)
        except (OSError, msgspec.MsgspecError, RecordDamaged, KeyMissing):
            return None  # then everything is read again
        return found if found.key == self._key and self.objects.has(found.cut) else None

    @property
    def _key(self) -> str:
        return self._ring.current.id if self._ring.current is not None else ""

    def _remember(self, last: Last) -> None:
        self._memory.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = self._memory.with_name(f"{self._memory.name}.{os.getpid()}")
        try:
            told = msgspec.msgpack.encode(last)
            fresh.write_bytes(envelope.seal(told, kind="seen", bound_to=self._memory.name, ring=self._ring))
            fresh.replace(self._memory)
        except (OSError, TooLarge):
            fresh.unlink(missing_ok=True)  # the cut stands; the next one reads everything again
