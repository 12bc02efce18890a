"""Keep the time limit of a test until its teardown has ended.

pytest ends the process of a test that takes longer than `faulthandler_timeout`. When the test fails, pytest switches
that limit off for the sake of debuggers. A teardown that hangs after a failure would then hang for ever. Here the limit
starts anew at each failure; pytest switches it off when the test is over.
"""

from __future__ import annotations

import faulthandler
from typing import Any

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: Any) -> None:
    config: pytest.Config = node.config
    seconds = float(config.getini("faulthandler_timeout") or 0)
    if isinstance(node, pytest.Item) and seconds and not config.getoption("usepdb"):
        is_fatal = bool(config.getini("faulthandler_exit_on_timeout"))
        faulthandler.dump_traceback_later(seconds, file=config.stash[fault_handler_stderr_fd_key], exit=is_fatal)
