"""Prove that a state is enough to resume from: pass it, and nothing else, to the code that resumes.

The code runs in a clean process: a new interpreter, an empty folder, no variables of this process. Anything missing
there would be missing after a real crash. A read of a missing field is reported by name, however deep it is.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from perdure._ground.bridge import Call
from perdure._ground.durations import Duration, require_timedelta
from perdure._ground.encoding import codec
from perdure.errors import InvalidInput, NotResumable

_SECONDS = timedelta(seconds=30)
# Run by its path, so that the clean process imports only the modules it needs.
_RESUMING = Path(__file__).with_name("resume_process.py")
_MARK = b"\n--perdure-verdict--\n"


@dataclass(frozen=True, slots=True)
class Verification:
    """The verdict: can the code continue with the state alone? `field` is the missing one, `problem` the message."""

    is_resumable: bool
    field: str = ""
    problem: str = ""

    def check(self) -> None:
        """Raises:
        NotResumable: it could not.
        """
        if not self.is_resumable:
            raise NotResumable(self.field, self.problem)


async def verify_resumable(
    state: Any, resume: Callable[[Any], Any] | str, *, timeout: Duration = _SECONDS
) -> Verification:
    """Run `resume(state)` in a clean process, with nothing but the state.

    `resume` is a function at the top of a module, or its name as `module:function` or `path/file.py:function`. It
    should do what a resumed agent does first: read the state and open what it names. It should not do the work itself.

    Raises:
        InvalidInput: the function does not exist.
        NotStorable: the state cannot be stored.
    """
    file, name = _place(resume)
    limit = require_timedelta("timeout", timeout, is_positive=True)
    sent = msgspec.msgpack.encode({"file": file, "name": name, "state": codec.encode(state)})
    return await Call(lambda: _judge(sent, limit))


def _place(resume: Callable[[Any], Any] | str) -> tuple[str, str]:
    if isinstance(resume, str):
        where, _, name = resume.rpartition(":")
        if not where or not name:
            raise InvalidInput(f"{resume!r} does not name a function", do="write module:function or file.py:function")
        if where.endswith(".py"):
            return str(Path(where).absolute()), name
        from importlib.util import find_spec

        try:
            spec = find_spec(where)
        except ModuleNotFoundError:
            spec = None
        if spec is None or spec.origin is None:
            raise InvalidInput(f"there is no module {where!r}")
        return spec.origin, name
    file = inspect.getsourcefile(resume) if inspect.isfunction(resume) else None
    if file is None or "<locals>" in resume.__qualname__ or "." in resume.__qualname__:
        raise InvalidInput(
            f"{resume!r} cannot be found by a clean process", do="give a function at the top of a module"
        )
    return str(Path(file).absolute()), resume.__qualname__


def _judge(sent: bytes, timeout: timedelta) -> Verification:
    # The path of our packages is passed on; the clean process inherits nothing else of this one.
    paths = os.pathsep.join(path for path in sys.path if path)
    env = {"PATH": os.defpath, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"}
    with tempfile.TemporaryDirectory(prefix="perdure-clean-") as folder:
        env["HOME"] = folder
        command = [sys.executable, "-P", str(_RESUMING)]
        try:
            done = subprocess.run(
                command,
                input=sent,
                capture_output=True,
                env=env,
                cwd=folder,
                timeout=timeout.total_seconds(),
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Verification(False, "", f"it took longer than {timeout.total_seconds():g} s")
    _, found, verdict = done.stdout.rpartition(_MARK)
    if not found:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return Verification(False, "", last[0] if last else f"it ended with exit code {done.returncode}")
    told: Mapping[str, str] = msgspec.msgpack.decode(verdict)
    return Verification(not told["problem"], told["field"], told["problem"])
