"""What a signal's handler raises goes through code that catches every Exception."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from perdure._ground import codec


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
