"""A receiver of webhooks as a process of its own: plain HTTP on loopback, one behaviour, and a file with what came.

    python receiver_process.py FILE BEHAVIOUR…

prints its port. Each line of the file is one request as JSON. The behaviours are used up one by one; the last one
stays: `ok`, a status such as `500`, `hang`, `slow`, `endless`, `redirect=URL`, `gzip`, `garbage`, `close`.
"""

from __future__ import annotations

import gzip
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_mutex = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    file = ""
    behaviours: list[str] = []  # noqa: RUF012

    def log_message(self, *_: Any) -> None:
        return

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0"))).decode()
        with _mutex:
            how = self.behaviours.pop(0) if len(self.behaviours) > 1 else self.behaviours[0]
            with open(self.file, "a") as file:
                headers = {name.lower(): value for name, value in self.headers.items()}
                file.write(json.dumps({"path": self.path, "headers": headers, "body": body, "how": how}) + "\n")
        try:
            self._behave(how)
        except OSError:
            return

    def _behave(self, how: str) -> None:
        kind, _, rest = how.partition("=")
        if kind == "ok":
            self._answer(204)
        elif kind.isdigit():
            self._answer(int(kind))
        elif kind == "hang":
            threading.Event().wait(60)
        elif kind == "slow":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            for _ in range(1000):
                self.wfile.write(b"x")
                threading.Event().wait(1)
        elif kind == "endless":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                self.wfile.write(b"x" * 65536)
        elif kind == "redirect":
            self._answer(302, b"", Location=rest)
        elif kind == "gzip":
            self._answer(200, gzip.compress(b"\0" * 100_000_000), Content_Encoding="gzip")
        elif kind == "garbage":
            self.wfile.write(b"\0\xff not http at all\r\n\r\n")
        self.close_connection = True

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    Handler.file, Handler.behaviours = sys.argv[1], sys.argv[2:]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()
