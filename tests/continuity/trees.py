"""Folders to cut: everything that git loses by itself, and how to tell whether it came back."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from pathlib import Path
from typing import Any


def git(folder: Path, *command: str) -> str:
    identity = ["-c", "user.name=ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *command], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def make_project(root: Path) -> Path:
    """A repository with all that a plain git snapshot changes or leaves out."""
    root.mkdir(parents=True)
    git(root, "init", "-q")
    (root / ".gitattributes").write_text("*.txt text eol=lf\n*.bin filter=lfs\n* ident\n")
    (root / ".gitignore").write_text("node_modules/\n*.log\n")
    (root / "crlf.txt").write_bytes(b"a\r\nb\r\n")
    (root / "ident.c").write_text("$Id$\n")
    (root / "big.bin").write_bytes(bytes(range(256)) * 500)
    (root / "src").mkdir()
    (root / "src/main.py").write_text("print('one')\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    (root / "src/main.py").write_text("print('two')\n")
    (root / "src/new.py").write_text("new = True\n")
    secret = root / "s.key"
    secret.write_text("k")
    secret.chmod(0o600)
    os.utime(secret, ns=(10**18 + 7, 10**18 + 7))
    tool = root / "tool.sh"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o750)
    (root / "empty/deeper").mkdir(parents=True)
    (root / "empty").chmod(0o711)
    (root / "dangling").symlink_to("nowhere")
    (root / "inside").symlink_to("src/main.py")
    (root / 'odd "name"\n\\x').write_text("odd")
    Path(os.fsdecode(os.fsencode(root) + b"/not-text-\xff")).write_text("bytes")
    nested = root / "vendor/nested"
    nested.mkdir(parents=True)
    git(nested, "init", "-q")
    (nested / "a.txt").write_bytes(b"in a nested repository\r\n")
    git(nested, "add", "-A")
    git(nested, "commit", "-qm", "nested")
    (nested / "wip.txt").write_text("not committed")
    (nested / ".gitignore").write_text("*.tmp\n")
    (nested / "x.tmp").write_text("ignored there")
    (root / "node_modules/p").mkdir(parents=True)
    (root / "node_modules/p/index.js").write_text("ignored")
    (root / "debug.log").write_text("ignored too")
    return root


def looks(root: Path, *, without: tuple[str, ...] = (".git",)) -> dict[str, Any]:
    """Everything that can be seen of a folder: kinds, modes, times, contents, targets."""
    found: dict[str, Any] = {}
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name not in without]
        for name in [*names, *(name for name in files if name not in without)]:
            path = Path(folder, name)
            status = path.lstat()
            kind = stat.S_IFMT(status.st_mode)
            content: Any = None
            if stat.S_ISLNK(status.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(status.st_mode):
                content = path.read_bytes()
            found[os.path.relpath(path, root)] = (kind, stat.S_IMODE(status.st_mode), status.st_mtime_ns, content)
    return found


def hash_of(folder: Path) -> str:
    """A hash over every name, byte, mode and time in a folder."""
    digest = hashlib.sha256()
    for name, shown in sorted(looks(folder, without=()).items()):
        digest.update(repr((name, shown)).encode(errors="surrogateescape"))
    return digest.hexdigest()
