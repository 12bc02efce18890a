"""What every test has: the `req` mark, async tests, and a real PostgreSQL on request."""

from __future__ import annotations

import os
import signal
import tempfile

import pytest
from hypothesis import settings

from tests.support import postgres

pytest_plugins = [
    "tests.support.requirements",
    "tests.support.engines",
    "tests.support.fixtures",
    "tests.support.results",
    "tests.support.async_tests",
    "tests.support.hang_watchdog",
]

# Shared machines are slow now and then: how long one example took says nothing. In CI the examples
# are the same each time, so that a change fails for what it changed.
settings.register_profile("perdure", deadline=None, print_blob=True, derandomize="CI" in os.environ)
settings.load_profile("perdure")


def pytest_configure(config: pytest.Config) -> None:
    _hear_signals()
    if not hasattr(config, "workerinput"):  # a worker has that of the process that started it
        _live_in_a_home_of_ones_own(config)
    postgres.own_the_run()


def _live_in_a_home_of_ones_own(config: pytest.Config) -> None:
    """A shell reads what is in its home folder, and one that is killed may leave locks there. Tests neither depend on
    the home of the person who runs them nor change it."""
    home = tempfile.TemporaryDirectory(prefix="perdure-home-", ignore_cleanup_errors=True)
    config.add_cleanup(home.cleanup)
    os.environ["HOME"] = home.name


def _hear_signals() -> None:
    """A shell has what it runs in the background ignore Ctrl-C, and nohup a hangup: programs that tests start would
    inherit that, and never end when they are told to."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_unconfigure() -> None:
    postgres.stop_server()
