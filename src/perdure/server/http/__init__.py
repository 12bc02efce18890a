"""The parts of HTTP that all routes share: requests and answers, checks, conditions, cursors, problems, repeated
requests."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "answer_bytes": (
            "encode",
            "to_json",
            "version_tag",
        ),
        "answer_writer": ("AnswerWriter",),
        "body_spool": ("Spool",),
        "conditions": (
            "key_in",
            "version_in",
        ),
        "cursors": (
            "listed",
            "page_limit",
            "read_cursor",
            "sign_cursor",
        ),
        "incoming": ("Incoming",),
        "input_checks": (
            "is_accepted",
            "read_body",
            "read_json",
            "read_query",
        ),
        "problems": (
            "HttpProblem",
            "body_of",
            "from_exception",
        ),
        "repeats": (
            "Answers",
            "answered_before",
            "fingerprint_of",
            "mark_of",
        ),
        "requests": (
            "Answer",
            "Ask",
            "Services",
            "Caller",
            "Handler",
            "SCOPE_MEANINGS",
            "Scope",
            "Streamed",
        ),
        "router": (
            "Match",
            "Router",
        ),
        "second_try": (
            "answer_of_first_try",
            "was_done",
        ),
        "write_turns": ("WriteTurns",),
    },
)
