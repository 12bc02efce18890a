"""Every git that perdure starts: its command line and its environment, so that no repository has it run anything.

A repository can name programs in its own configuration: hooks, a file system monitor, filters, a signature checker, a
helper that fetches missing objects. perdure asks git about folders that others may have written, so all of these are
off, whatever the repository says. The user's own configuration still counts where the repository is the user's: who
commits, what is ignored, which folders are safe.

Owns how git is started. perdure/_runtime/workspace_*.py and perdure/memory/artifacts/git_commits.py ask the questions.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

# On the command line they win over every file, and reach a git that git itself starts.
_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.alternateRefsCommand": "",
    "core.sshCommand": "false",
    "core.askPass": "",
    "core.editor": "false",
    "credential.helper": "",
    "diff.external": "",
    "gpg.program": "false",
    "gpg.ssh.program": "false",
    "gpg.x509.program": "false",
    "log.showSignature": "false",
    "submodule.recurse": "false",
    "protocol.allow": "never",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_OF_A_FILTER = re.compile(rb"filter\.(.+)\.(?:clean|smudge|process|required)", re.DOTALL)
_OF_THE_REPOSITORY = (b"local", b"worktree")


def command(*words: str, settings: Mapping[str, str] | None = None) -> list[str]:
    """The command line of a git that runs no program but itself."""
    chosen = {**_SETTINGS, **(settings or {})}
    return [
        "git",
        "--no-pager",
        *(part for name, value in chosen.items() for part in ("-c", f"{name}={value}")),
        *words,
    ]


def environment(more: Mapping[str, str] | None = None, *, alone: bool = False) -> dict[str, str]:
    """The environment for it: nothing leads to another repository, waits for a person or fetches anything.

    `alone`: settings of the user and the machine do not apply either.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    ours = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1"}
    if alone:
        ours |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1"}
    return {**kept, **ours, "LC_ALL": "C", **(more or {})}


def is_hash(text: str) -> bool:
    """True if this is the full name of an object, and so cannot be an option, a path or an expression."""
    return _HASH.fullmatch(text) is not None


def own_filters(folder: Path | bytes) -> set[str]:
    """The filters that the repository around a folder defines itself: programs to be run on files.

    Raises:
        OSError: git cannot be started.
    """
    done = subprocess.run(
        command("config", "--list", "--show-scope", "--name-only", "-z"),
        cwd=folder,
        env=environment(),
        capture_output=True,
        check=False,
    )
    parts = done.stdout.split(b"\0")
    pairs = zip(parts[::2], parts[1::2], strict=False)
    found = (_OF_A_FILTER.fullmatch(name) for scope, name in pairs if scope in _OF_THE_REPOSITORY)
    return {os.fsdecode(match[1]) for match in found if match is not None}


def without_filters(names: set[str]) -> dict[str, str]:
    """Variables that have git take files as they are, where these filters would be run on them."""
    values = {"clean": "", "smudge": "", "process": "", "required": "false"}
    pairs = [(f"filter.{name}.{key}", value) for name in sorted(names) for key, value in values.items()]
    told = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (name, value) in enumerate(pairs):
        told |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return told if pairs else {}
