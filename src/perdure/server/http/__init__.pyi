"""The parts of HTTP that all routes share: requests and answers, checks, conditions, cursors, problems, repeated
requests.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.server.http.answer_bytes import encode, to_json, version_tag
from perdure.server.http.answer_writer import AnswerWriter
from perdure.server.http.body_spool import Spool
from perdure.server.http.conditions import key_in, version_in
from perdure.server.http.cursors import listed, page_limit, read_cursor, sign_cursor
from perdure.server.http.incoming import Incoming
from perdure.server.http.input_checks import is_accepted, read_body, read_json, read_query
from perdure.server.http.problems import HttpProblem, body_of, from_exception
from perdure.server.http.repeats import Answers, answered_before, fingerprint_of, mark_of
from perdure.server.http.requests import Answer, Ask, Services, Caller, Handler, SCOPE_MEANINGS, Scope, Streamed
from perdure.server.http.router import Match, Router
from perdure.server.http.second_try import answer_of_first_try, was_done
from perdure.server.http.write_turns import WriteTurns
__all__ = [
    "encode",
    "to_json",
    "version_tag",
    "AnswerWriter",
    "Spool",
    "key_in",
    "version_in",
    "listed",
    "page_limit",
    "read_cursor",
    "sign_cursor",
    "Incoming",
    "is_accepted",
    "read_body",
    "read_json",
    "read_query",
    "HttpProblem",
    "body_of",
    "from_exception",
    "Answers",
    "answered_before",
    "fingerprint_of",
    "mark_of",
    "Answer",
    "Ask",
    "Services",
    "Caller",
    "Handler",
    "SCOPE_MEANINGS",
    "Scope",
    "Streamed",
    "Match",
    "Router",
    "answer_of_first_try",
    "was_done",
    "WriteTurns",
]
