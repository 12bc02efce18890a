"""The dashboard beside the demo: a server over its store, for a person who watches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from perdure.errors import InvalidInput


@contextmanager
def running_dashboard(store: str, *, opens: bool) -> Iterator[str]:
    """`perdure up` without workers, gone at the end of the block; gives the link that begins a session.

    `opens` shows the link in the person's browser.

    Raises:
        InvalidInput: the server does not start; what it said is in the error.
    """
    command = [sys.executable, "-m", "perdure", "up", "--json", "--port", "0", "--no-access-log"]
    command += ["--open"] if opens else []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, encoding="utf-8", env={**os.environ, "PERDURE_URL": store}
    ) as server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            if not line:
                raise InvalidInput(
                    "the dashboard of the demo did not start",
                    kept="nothing was run",
                    do="see what `perdure up` says above; pip install 'perdure[server]' brings the server",
                )
            yield str(json.loads(line)["link"])
        finally:
            server.terminate()
