"""The storage of cuts: a git object store of perdure's own, beside the store, never the user's.

A cut is one commit without a parent, under `refs/cuts/<id>`: the folder `files` holds what was in the workspace,
the file `manifest` what git does not know (modes, times, empty folders). Contents are named by their SHA-256, so
a file that did not change costs nothing, and a damaged one is noticed when it is read.

If the store has a key, contents and names are sealed by it (sealer.py); the commit's message names the key.

A cut is written by one `git fast-import`: its objects are synced, then its ref appears. If that fails half-way,
there is no ref, and every earlier cut is as it was.
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from perdure._ground import git
from perdure._ground.ids import is_uid
from perdure._ground.secrets.crypto import KeyRing
from perdure._runtime.workspace.names import is_inside, quoted, stored, unstored
from perdure._runtime.workspace.sealer import Sealer
from perdure.errors import CutFailed, RecordDamaged

_CHUNK = 1 << 20
# Durable when it returns: loose objects too, synced together.
_SAFELY = {"core.fsync": "all", "core.fsyncMethod": "batch"}
_FOREIGN = {**_SAFELY, "core.protectNTFS": "false", "core.protectHFS": "false"}
# What is larger goes through git in pieces, and is never made from another: that would take it all into memory.
_LARGE = {"core.bigFileThreshold": "32m"}


class Blob(NamedTuple):
    """Contents on their way into the store: bytes, or a file of ours that holds them."""

    oid: str
    size: int
    source: bytes | Path


class News(Protocol):
    """The changes of a cut to the one before: `changes` (path, git mode, oid) and `removed` hold once all blobs are
    read."""

    changes: list[tuple[bytes, str, str]]
    removed: list[bytes]

    def blobs(self) -> Iterator[Blob]: ...


class Written(NamedTuple):
    commit: str
    files: str  # the tree of the files, on which the next cut builds


class Objects:
    """The object store in one folder, made when it is first written to."""

    folder: Path

    def __init__(self, home: Path, ring: KeyRing | None = None) -> None:
        self.home = home
        self.folder = home / "objects.git"
        self._ring = ring or KeyRing()
        self._sealers: dict[str, Sealer] = {}

    # ── sealing ─────────────────────────────────────────────────────────────────────────────────

    @property
    def sealer(self) -> Sealer | None:
        """The sealer of the next cut; None without a key."""
        return self._sealer(self._ring.current.id) if self._ring.current is not None else None

    def sealer_of(self, cut: str) -> Sealer | None:
        """The sealer of a stored cut; None if it is stored in clear.

        Raises:
            KeyMissing: its key is not here.
        """
        key = self.keys([cut]).get(cut)
        return self._sealer(key) if key else None

    def keys(self, names: Sequence[str] = ()) -> dict[str, str]:
        """Every cut (or those named) and the id of the key it is sealed with; none for one in clear."""
        return {cut: key for cut, (_, key) in self._listed(names).items()}

    def _sealer(self, key: str) -> Sealer:
        if key not in self._sealers:
            self._sealers[key] = Sealer(self._ring.get(key))
        return self._sealers[key]

    # ── writing ─────────────────────────────────────────────────────────────────────────────────

    def write(
        self,
        cut: str,
        news: News,
        manifest: Callable[[], bytes],
        base: str = "",
    ) -> Written:
        """Store a cut: the news on top of the tree `base`; the manifest is asked for when all contents are read.

        Raises:
            CutFailed: it could not be written, and there is no such cut.
        """
        self._make()
        argv = git.command("fast-import", "--quiet", "--done", "--force", "--depth=0", settings=_FOREIGN)
        pipe = subprocess.PIPE
        child = subprocess.Popen(argv, cwd=self.folder, env=self._environment(), stdin=pipe, stdout=pipe, stderr=pipe)
        assert child.stdin is not None and child.stdout is not None and child.stderr is not None
        try:
            written = self._dictate(child.stdin, child.stdout, cut, news, manifest, base)
            child.stdin.close()
            problem = child.stderr.read().decode(errors="replace").strip()
            if child.wait() == 0 and written is not None:
                return written
        except BrokenPipeError:
            problem = child.stderr.read().decode(errors="replace").strip()
        finally:
            child.kill()
            child.wait()
            for stream in (child.stdin, child.stdout, child.stderr):
                with suppress(OSError):
                    stream.close()
            self._sweep()
        raise CutFailed(str(self.folder), _first_line(problem) or "git fast-import ended early")

    def _dictate(
        self,
        out: IO[bytes],
        answers: IO[bytes],
        cut: str,
        news: News,
        manifest: Callable[[], bytes],
        base: str,
    ) -> Written | None:
        for blob in news.blobs():
            out.write(b"blob\ndata %d\n" % blob.size)
            for part in _parts(blob.source):
                out.write(part)
            out.write(b"\n")
        sealer = self.sealer
        key = sealer.id.encode() if sealer else b""
        out.write(b"commit %b\nmark :1\ncommitter perdure <> 0 +0000\n" % _ref(cut).encode())
        out.write(b"data %d\n%b\n" % (len(key), key))
        if base:
            out.write(b'M 040000 %b "files"\n' % base.encode())
        for path in news.removed:
            out.write(b"D %b\n" % quoted(stored(path, sealer)))
        for path, mode, oid in news.changes:
            out.write(b"M %b %b %b\n" % (mode.encode(), oid.encode(), quoted(stored(path, sealer))))
        told = sealer.whole(manifest()) if sealer else manifest()
        out.write(b'M 100644 inline "manifest"\ndata %d\n' % len(told) + told + b"\n")
        out.write(b'get-mark :1\nls :1 "files"\ndone\n')
        out.flush()
        commit, listed = answers.readline().decode().strip(), answers.readline().decode()
        if not commit:
            return None
        # With no file at all there is no such tree: git answers `missing files`.
        return Written(commit, listed.split()[2] if listed.startswith("040000") else "")

    def _make(self) -> None:
        if (self.folder / "HEAD").exists():
            return
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder.mkdir(exist_ok=True, mode=0o700)
        self.run("init", "-q", "--bare", "--object-format=sha256", "--template=", ".")
        for name, value in (("core.compression", "1"), ("gc.auto", "0"), ("core.logAllRefUpdates", "false")):
            self.run("config", name, value)

    def _sweep(self) -> None:
        """The files that a failed import leaves behind."""
        for pattern in ("fast_import_crash_*", "objects/pack/tmp_*"):
            for path in self.folder.glob(pattern):
                with suppress(OSError):
                    path.unlink()

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    def has(self, cut: str) -> bool:
        return (self.folder / "HEAD").exists() and bool(self.cuts([cut]))

    def cuts(self, names: Sequence[str] = ()) -> dict[str, str]:
        """Every cut (or those named) and its commit."""
        return {cut: commit for cut, (commit, _) in self._listed(names).items()}

    def _listed(self, names: Sequence[str]) -> dict[str, tuple[str, str]]:
        if not (self.folder / "HEAD").exists():
            return {}
        patterns = [_ref(name) for name in names] or ["refs/cuts"]
        form = "--format=%(refname:lstrip=2) %(objectname) %(contents:subject)"
        lines = self.run("for-each-ref", form, *patterns).decode(errors="replace").split("\n")
        parts = [line.split(" ", 2) for line in lines if line]
        return {cut: (commit, key) for cut, commit, key in parts}

    def manifest(self, cut: str) -> bytes:
        """
        Raises:
            CutFailed: it is damaged.
            KeyMissing: its key is not here.
        """
        stored = self.run("cat-file", "blob", f"{_ref(cut)}:manifest")
        sealer = self.sealer_of(cut)
        if sealer is None:
            return stored
        opened = io.BytesIO()
        with self._as_cut_failed():
            sealer.open(io.BytesIO(stored), opened)
        return opened.getvalue()

    @contextmanager
    def _as_cut_failed(self) -> Iterator[None]:
        try:
            yield
        except RecordDamaged as error:
            raise CutFailed(str(self.folder), f"{error.record}: {error.problem}", do="use an earlier cut") from None

    def files(self, cut: str) -> dict[bytes, tuple[str, str]]:
        """Each path of a cut with its git mode and the name of its contents.

        Raises:
            CutFailed: a name in it leads out of the folder, or is there twice.
        """
        listed = self.run("ls-tree", "-r", "-z", "--full-tree", _ref(cut))
        found: dict[bytes, tuple[str, str]] = {}
        sealer = self.sealer_of(cut)
        for line in filter(None, listed.split(b"\0")):
            about, _, name = line.partition(b"\t")
            if not name.startswith(b"files/"):
                continue
            mode, _, oid = about.decode().split()
            with self._as_cut_failed():
                path = unstored(name, sealer)
            if path in found or not is_inside(path):
                raise CutFailed(str(self.folder), f"cut {cut} holds the name {os.fsdecode(path)!r}", do="do not use it")
            found[path] = (mode, oid)
        return found

    def contents(self, cut: str, oids: Sequence[str], scratch: Path) -> Iterator[tuple[str, Path]]:
        """Each content of a cut as a file of its own in `scratch`, checked against its name.

        Raises:
            CutFailed: one is missing or damaged.
        """
        sealer = self.sealer_of(cut)
        argv = git.command("cat-file", "--batch")
        pipe = subprocess.PIPE
        with subprocess.Popen(argv, cwd=self.folder, env=self._environment(), stdin=pipe, stdout=pipe) as child:
            assert child.stdin is not None and child.stdout is not None
            asker = threading.Thread(target=_ask, args=(child.stdin, oids), daemon=True)
            asker.start()
            try:
                for number, oid in enumerate(oids):
                    target = scratch / str(number)
                    self._receive(child.stdout, oid, target)
                    if sealer is not None:
                        self._open(sealer, target)
                    yield oid, target
            finally:
                child.kill()
                asker.join()

    def _receive(self, stream: IO[bytes], oid: str, target: Path) -> None:
        head = stream.readline().split()
        if len(head) != 3 or head[1] != b"blob":
            raise CutFailed(str(self.folder), f"the content {oid} is missing", do="use an earlier cut")
        left = int(head[2])
        digest = hashlib.sha256(b"blob %d\0" % left)
        with target.open("wb") as file:
            while left:
                part = stream.read(min(left, _CHUNK))
                if not part:
                    break
                left -= len(part)
                digest.update(part)
                file.write(part)
        stream.read(1)
        if left or digest.hexdigest() != oid:
            raise CutFailed(str(self.folder), f"the content {oid} is damaged", do="use an earlier cut")

    def _open(self, sealer: Sealer, target: Path) -> None:
        plain = target.with_suffix(".plain")
        with self._as_cut_failed(), target.open("rb") as source, plain.open("wb") as out:
            sealer.open(source, out)
        plain.replace(target)

    # ── keeping in order, and moving ────────────────────────────────────────────────────────────

    def note_owner(self, cut: str, uid: str) -> None:
        """Remember that a cut is this task's, before the checkpoint that names it is written."""
        _ref(cut)
        folder = self.home / "owners"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (folder / cut).open("a") as note:
            note.write(f"{uid}\n")

    def keep_only(self, wanted: set[str]) -> list[str]:
        """Forget every cut that is not wanted and give back its space; what was forgotten."""
        gone = [cut for cut in self.cuts() if cut not in wanted]
        for cut in gone:
            self.run("update-ref", "-d", _ref(cut))
        if gone:
            # An hour: a cut that another process is writing has objects and no ref yet.
            self.run("gc", "--quiet", "--prune=1.hour.ago")
        return gone

    def pack(self, cuts: Sequence[str], out: IO[bytes]) -> None:
        """Write these cuts, with all they hold, as one stream."""
        wanted = self.cuts(cuts)
        revisions = "".join(f"{wanted[cut]}\n" for cut in cuts)
        done = subprocess.run(
            git.command("pack-objects", "--stdout", "--revs", "-q", settings=_LARGE),
            cwd=self.folder,
            env=self._environment(),
            input=revisions.encode(),
            stdout=out,
            stderr=subprocess.PIPE,
            check=False,
        )
        if done.returncode:
            raise CutFailed(str(self.folder), _first_line(done.stderr.decode(errors="replace")))

    def unpack(self, source: IO[bytes], cuts: dict[str, str]) -> None:
        """Take in what `pack` wrote; every object is checked before any cut is known by its name.

        Raises:
            CutFailed: it is damaged or not whole; no cut was added.
        """
        for cut, commit in cuts.items():
            _ref(cut)
            if not git.is_hash(commit):
                raise CutFailed(f"cut {cut}", "its commit has no name that git gives", do="do not use it")
        self._make()
        argv = git.command("index-pack", "--stdin", settings={**_SAFELY, **_LARGE})
        done = subprocess.run(
            argv, cwd=self.folder, env=self._environment(), stdin=source, capture_output=True, check=False
        )
        if done.returncode:
            raise CutFailed(str(self.folder), _first_line(done.stderr.decode(errors="replace")))
        for commit in cuts.values():
            self.run("rev-list", "--objects", "--quiet", "--end-of-options", commit, "--")
        for cut, commit in cuts.items():
            self.run("update-ref", "--end-of-options", _ref(cut), commit)

    def run(self, *command: str) -> bytes:
        try:
            done = subprocess.run(
                git.command(*command, settings=_SAFELY),
                cwd=self.folder,
                env=self._environment(),
                capture_output=True,
                check=False,
            )
        except OSError as error:
            raise CutFailed(str(self.folder), f"git: {error.strerror}", do="install git 2.29 or newer") from error
        if done.returncode:
            raise CutFailed(str(self.folder), _first_line(done.stderr.decode(errors="replace")))
        return done.stdout

    def _environment(self) -> dict[str, str]:
        """Ours alone: no settings of the user or the machine reach this store."""
        return git.environment({"GIT_DIR": "."}, alone=True)


def _ref(cut: str) -> str:
    """Where git knows a cut. Its name stands on a command line, and as a file: it is a uid, and nothing else."""
    if not is_uid(cut):
        raise CutFailed(f"cut {cut!r}", "that is not the name of a cut", do="do not use it")
    return f"refs/cuts/{cut}"


def _ask(pipe: IO[bytes], oids: Sequence[str]) -> None:
    with suppress(OSError, ValueError):  # the reader of the answers is gone
        pipe.write("".join(f"{oid}\n" for oid in oids).encode())
        pipe.close()


def oid_of(size: int, parts: Iterable[bytes]) -> str:
    """The name git gives these contents."""
    digest = hashlib.sha256(b"blob %d\0" % size)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _parts(source: bytes | Path) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    with source.open("rb") as file:
        while part := file.read(_CHUNK):
            yield part


def _first_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[0].removeprefix("fatal: ") if lines else ""
