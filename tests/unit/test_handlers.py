"""What a signal's handler raises goes through code that catches every Exception."""

from __future__ import annotations

import asyncio
import itertools
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from perdure._ground.bridge import on_a_loop
from perdure._ground.encoding import codec


class Alarm(Exception):
    pass


def bark(number: int, frame: Any) -> None:
    raise Alarm


@pytest.fixture
def watchdog() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, bark)
    yield
    signal.signal(signal.SIGALRM, before)


class Disturbed(dict[str, int]):
    """A state that is being compared when the alarm goes off."""

    def __eq__(self, other: object) -> bool:
        signal.raise_signal(signal.SIGALRM)
        return True

    __hash__ = None  # type: ignore[assignment]


class Odd(Disturbed):
    def __eq__(self, other: object) -> bool:
        raise Alarm


def test_an_alarm_while_a_value_is_encoded_arrives_as_itself(watchdog: None) -> None:
    with pytest.raises(Alarm):
        codec.round_trip({"state": Disturbed(n=1)})


def test_the_same_error_of_a_value_has_it_written_in_its_other_form(watchdog: None) -> None:
    data, back = codec.round_trip({"state": Odd(n=1)})
    assert not codec.is_plain(data) and dict(back["state"]) == {"n": 1}


# As asyncio has it, with an alarm just before one of the callbacks is called.
_RUN = """
def _run(self):
    try:
        if next(left) == 0:
            raise_signal(SIGALRM)
        self._context.run(self._callback, *self._args)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        self._loop.call_exception_handler({"message": "in a callback", "exception": error, "handle": self})
"""


async def _be_woken_twice() -> str:
    loop = asyncio.get_running_loop()
    for _ in range(2):
        woken = loop.create_future()
        loop.call_soon(woken.set_result, None)
        await woken
    return "done"


@pytest.mark.req("R11")
@pytest.mark.parametrize("callback", range(5))
def test_an_alarm_in_the_middle_of_an_event_loop_arrives_and_no_task_waits_for_ever(
    watchdog: None, monkeypatch: pytest.MonkeyPatch, callback: int
) -> None:
    names = {"left": itertools.count(callback, -1), "raise_signal": signal.raise_signal, "SIGALRM": signal.SIGALRM}
    exec(compile(_RUN, asyncio.events.__file__, "exec"), names)
    monkeypatch.setattr(asyncio.Handle, "_run", names["_run"])
    with pytest.raises(Alarm):
        on_a_loop(_be_woken_twice())


def test_an_alarm_in_code_of_others_is_raised_there(watchdog: None) -> None:
    async def be_disturbed() -> str:
        with pytest.raises(Alarm):
            signal.raise_signal(signal.SIGALRM)
        return "went on"

    assert on_a_loop(be_disturbed()) == "went on"
    assert signal.getsignal(signal.SIGALRM) is bark
