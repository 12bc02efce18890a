"""A web server that counts how often it was asked; its count is in its memory alone."""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import count

asked = count(1)


class Counting(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(next(asked)).encode())


HTTPServer(("127.0.0.1", int(sys.argv[1])), Counting).serve_forever()
