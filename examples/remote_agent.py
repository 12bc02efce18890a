"""An agent with nothing but an address and a key: no perdure, no store, no packages.

    perdure serve
    perdure api-keys make reader --scope agent --scope tasks:control
    python examples/remote_agent.py http://127.0.0.1:7420 prd_…

It reads six pages. After the third it pauses and waits to be told to go on. Kill it at any time, and start it again
here or on another machine: it goes on after its last checkpoint. Started while its task is paused, it resumes it.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from uuid import uuid4

PAGES = ["one", "two", "three", "four", "five", "six"]


class Api:
    """The server, for one holder of one key."""

    def __init__(self, address: str, key: str) -> None:
        self._address, self._key = address, key

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Send one request. In names of headers, `_` stands for `-`."""
        sent = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        raw = None if body is None else json.dumps(body).encode()
        with urlopen(Request(self._address + path, raw, sent, method=method), timeout=90) as answer:
            text = answer.read()
        return json.loads(text) if text else None


def main(address: str, key: str) -> None:
    api = Api(address, key)
    # A key names one request, not one task: an agent that is started again asks anew how its task stands.
    begin = {"id": "reader", "mode": "open", "state": {"read": []}}
    task = api("POST", "/v1/tasks", begin, Idempotency_Key=str(uuid4()))
    if task["status"] == "completed":
        print("done before", flush=True)
        return
    if task["status"] == "paused":
        task = api("POST", "/v1/tasks/reader/resume")
        print("resumed after", len(task["state"]["read"]), flush=True)

    me = api("POST", "/v1/holders", {"host": socket.gethostname(), "pid": os.getpid(), "lease": 30})
    begun = api("POST", "/v1/tasks/reader/attempt", {"take_over": True}, Perdure_Holder=me["token"])
    fence, state = begun["fence"], begun["task"]["state"]
    for page in PAGES[len(state["read"]) :]:
        state["read"].append(page)  # the work
        api("POST", "/v1/tasks/reader/checkpoints", {"state": state, "label": page}, Perdure_Fence=fence)
        print("read", page, flush=True)
        if page == "three":
            api("POST", "/v1/tasks/reader/attempt/pause", {"message": "Go on?"}, Perdure_Fence=fence)
            print("paused", flush=True)
            while not api("GET", "/v1/tasks/reader/wait?status=running&timeout=60")["reached"]:
                continue
            begun = api("POST", "/v1/tasks/reader/attempt", {"take_over": True}, Perdure_Holder=me["token"])
            fence = begun["fence"]
    api("POST", "/v1/tasks/reader/complete", {"result": state}, Perdure_Fence=fence)
    print("completed", flush=True)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:3])
    except HTTPError as refused:
        problem = json.load(refused)
        sys.exit(f"{problem['code']}: {problem['detail']}\n  kept: {problem['kept']}\n  do:   {problem['do']}")
