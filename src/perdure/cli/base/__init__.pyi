"""The parts that all commands share: arguments, options, the app, errors.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.cli.base.arguments import (
    id_argument,
    json_object,
    json_option,
    json_or_text,
    json_value,
    length,
    pairs_option,
    parse_json,
    patch_of,
    since,
)
from perdure.cli.base.completion import complete
from perdure.cli.base.command import Verb, VerbGroup, root
from perdure.cli.base.decisions import answer_decided
from perdure.cli.base.invocation import Invocation, tell_warnings_safely
from perdure.cli.base.app_import import load_app, load_function
from perdure.cli.base import error_output
__all__ = [
    "id_argument",
    "json_object",
    "json_option",
    "json_or_text",
    "json_value",
    "length",
    "pairs_option",
    "parse_json",
    "patch_of",
    "since",
    "complete",
    "Verb",
    "VerbGroup",
    "root",
    "answer_decided",
    "Invocation",
    "tell_warnings_safely",
    "load_app",
    "load_function",
    "error_output",
]
