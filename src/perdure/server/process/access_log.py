"""One line of JSON per request on stderr: route, status, milliseconds, credential. Never a path, a query or a body."""

from __future__ import annotations

import json
import logging
import sys

from perdure._ground.clock import moment
from perdure._ground.exception_text import message_of
from perdure._ground.secrets.known_secrets import redact

_FIELDS = ("route", "status", "ms", "bytes", "request_id", "credential", "address")


class JsonLines(logging.Formatter):
    """A record as one line of JSON, whatever is in it."""

    def format(self, record: logging.LogRecord) -> str:
        told = {
            "at": moment(int(record.created * 1000)).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            **{name: getattr(record, name) for name in _FIELDS if hasattr(record, name)},
        }
        if not hasattr(record, "route") or record.levelno > logging.INFO:
            told["message"] = redact(record.getMessage())
        if record.exc_info and record.exc_info[1] is not None:
            told["error"] = redact(f"{type(record.exc_info[1]).__name__}: {message_of(record.exc_info[1])}")
            told["trace"] = redact(self.formatException(record.exc_info))
        return json.dumps(told)  # ASCII: no control character reaches a terminal


def log_to_stderr(*, with_requests: bool = True) -> None:
    """Write what the server logs to stderr; without requests, only what went wrong."""
    logger = logging.getLogger("perdure.server")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logger.addHandler(handler)
    logger.setLevel(logging.INFO if with_requests else logging.WARNING)
    logger.propagate = False
