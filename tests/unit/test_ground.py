"""Clocks, ids and the identity of processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest

from perdure._ground import clock
from perdure._ground.clock import MovableClock, SystemClock, moment, to_ms
from perdure._ground.ids import Process, check_id, is_proven_dead, new_uid, this_process
from perdure.errors import InvalidId, InvalidInput, RecordDamaged


def test_newer_uids_sort_after_older_ones_and_never_repeat():
    uids = [new_uid(ms) for ms in range(1_700_000_000_000, 1_700_000_000_500)]
    assert uids == sorted(uids)
    at_once = [new_uid(1_800_000_000_000) for _ in range(5000)]
    assert at_once == sorted(set(at_once))
    assert all(len(uid) == 24 and uid.isalnum() for uid in uids)


def test_threads_that_make_uids_in_one_millisecond_make_different_ones():
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: [new_uid(1_900_000_000_000) for _ in range(3000)], range(4)))
    assert len({uid for uids in made for uid in uids}) == 12_000


@pytest.mark.parametrize("name", ["refactor-auth-module", "a", "Größe/2024 (v2)", "日本", "x" * 200])
def test_ids_people_write_are_accepted(name):
    assert check_id(name) == name


@pytest.mark.parametrize("name", ["", " x", "x ", "a\tb", "a\u202eb", "x" * 201, "\ue000", None])
def test_ids_nobody_could_type_are_refused(name):
    with pytest.raises(InvalidId):
        check_id(name)


def test_a_living_process_is_not_proven_dead_and_one_that_ended_is():
    me = this_process()
    assert not is_proven_dead(me, same_machine=True)
    assert is_proven_dead(me._replace(start=me.start + 1), same_machine=False), "its pid is somebody else's now"
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with open(f"/proc/{child.pid}/stat", "rb") as file:
        start = int(file.read().rpartition(b")")[2].split()[19])
    theirs = Process(me.host, me.boot_id, me.pid_ns, child.pid, start)
    assert not is_proven_dead(theirs, same_machine=False)
    child.kill()
    child.communicate()
    assert is_proven_dead(theirs, same_machine=False)


def test_a_process_of_another_boot_or_namespace_is_dead_only_if_it_must_have_been_here():
    me = this_process()
    other_boot = me._replace(boot_id="11111111-2222")
    assert is_proven_dead(other_boot, same_machine=True) and not is_proven_dead(other_boot, same_machine=False)
    assert not is_proven_dead(me._replace(pid_ns="pid:[1]", pid=1, start=1), same_machine=True)
    assert not is_proven_dead(me._replace(boot_id=""), same_machine=True)


def test_the_movable_clock_is_one_for_all_who_map_it(tmp_path):
    clock = MovableClock(tmp_path / "clock")
    other = MovableClock(tmp_path / "clock")
    wall, boot = other.now_ms(), other.boottime()
    clock.advance(hours=8)
    assert other.now_ms() - wall == 8 * 3_600_000 and other.boottime() - boot == 8 * 3600
    program = "from perdure._ground.clock import from_environment; print(from_environment().now_ms())"
    env = {**os.environ, "PERDURE_TEST_CLOCK": str(clock.path)}
    seen = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert int(seen.stdout) == clock.now_ms()


def test_a_wait_on_the_movable_clock_ends_when_it_is_moved_or_the_bell_rings(tmp_path):
    clock, bell = MovableClock(tmp_path / "clock"), threading.Event()
    waiting = threading.Thread(target=lambda: results.append(clock.wait(60, bell)))
    results: list[bool] = []
    waiting.start()
    clock.advance(minutes=2)
    waiting.join()
    bell.set()
    assert results == [False] and clock.wait(60, bell)


def test_moments_are_aware_and_naive_ones_are_refused():
    now = SystemClock().now_ms()
    assert to_ms(moment(now)) == now
    with pytest.raises(InvalidInput):
        to_ms(datetime(2030, 1, 1))  # noqa: DTZ001


@pytest.mark.parametrize("ms", [-(1 << 62), -62_135_596_800_001, 253_402_300_800_000, 1 << 80, None, "soon"])
def test_a_moment_that_no_calendar_has_is_a_damaged_record(ms: Any):
    with pytest.raises(RecordDamaged, match="not in the calendar"):
        moment(ms)


def test_the_first_and_the_last_moment_of_the_calendar_are_moments():
    assert (moment(-62_135_596_800_000).year, moment(253_402_300_799_999).year) == (1, 9999)


def test_an_alarm_that_goes_off_while_a_moment_is_made_arrives_as_itself(monkeypatch: pytest.MonkeyPatch):
    class Interrupted:
        @staticmethod
        def fromtimestamp(*_: Any) -> datetime:
            raise TimeoutError("the watchdog's")

    monkeypatch.setattr(clock, "datetime", Interrupted)
    with pytest.raises(TimeoutError, match="the watchdog's"):
        moment(0)
