"""A dev server that says who it is: its pid, a uuid made at its start, and a variable of its environment."""

import os
import sys
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ME = f"{os.getpid()} {uuid.uuid4()} {os.environ.get('APP_MODE', '')}".encode()


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(ME)))
        self.end_headers()
        self.wfile.write(ME)

    def log_message(self, format: str, *args: Any) -> None: ...


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answers)
    print("listening", flush=True)
    server.serve_forever()
