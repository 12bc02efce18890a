"""A server on a real socket, in a thread of the test's process, for clients that know nothing of it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn


@contextmanager
def listening(application: Any) -> Iterator[str]:
    """The address of an ASGI application while the block lasts."""
    door = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(application, log_level="critical", timeout_graceful_shutdown=1, http="h11", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [door]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{door.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        door.close()
