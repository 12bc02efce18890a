"""Where a task is, and which worker could carry it on. Nothing is run to find out.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure._durable.inspect.announced_functions import FunctionInfo, announcement, functions, read_functions
from perdure._durable.inspect.open_calls import CallFrame
from perdure._durable.inspect.situation import (
    HasUid,
    Told,
    Unfinished,
    gather,
    decide,
    page_with_situations,
    situation_by_uid,
    situation_of,
    situations_of,
    unfinished,
    why_not_at_work,
    without_data,
)
from perdure._durable.inspect.task_account import TaskAccount, account_of, stored_bytes
from perdure._durable.inspect.task_call import TaskCall, call_of_task
from perdure._durable.inspect.where_report import Where, shown_arguments, where, who_works_on
from perdure._durable.inspect import task_account
__all__ = [
    "FunctionInfo",
    "announcement",
    "functions",
    "read_functions",
    "CallFrame",
    "HasUid",
    "Told",
    "Unfinished",
    "gather",
    "decide",
    "page_with_situations",
    "situation_by_uid",
    "situation_of",
    "situations_of",
    "unfinished",
    "why_not_at_work",
    "without_data",
    "TaskAccount",
    "account_of",
    "stored_bytes",
    "TaskCall",
    "call_of_task",
    "Where",
    "shown_arguments",
    "where",
    "who_works_on",
    "task_account",
]
