"""The suite of `app.tasks` a further time, through a server: each test gets the address of a server as its store.

Every test of these modules that takes a store is run here, unless it is named below with the reason.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from types import ModuleType

import pytest

from perdure.server import make_app
from tests.support.asking import ALL, Known
from tests.support.live_server import listening
from tests.tasks import (
    test_append,
    test_attempts,
    test_checkpoint_door,
    test_history,
    test_lifecycle,
    test_listing,
    test_once,
    test_pages,
    test_pauses,
    test_state_writes,
)

MODULES: tuple[ModuleType, ...] = (
    test_append,
    test_attempts,
    test_checkpoint_door,
    test_history,
    test_lifecycle,
    test_listing,
    test_once,
    test_pages,
    test_pauses,
    test_state_writes,
)
STORES = {"url", "shared_url", "quick_url"}
NOT_HERE = {
    "it looks into the store": {
        "test_a_command_that_no_worker_may_run_is_told_by_where_and_in_the_log",
        "test_a_growing_state_is_stored_as_deltas_and_every_checkpoint_still_comes_back",
        "test_a_holder_paused_from_outside_may_still_store_its_last_checkpoint",
        "test_a_page_lists_checkpoints_without_reading_what_they_hold",
        "test_a_page_reads_neither_checkpoints_nor_attempts",
        "test_a_record_shows_no_attempt_that_began_after_its_status_was_read",
        "test_a_save_beside_an_append_leaves_the_codes_own_copy_alone",
        "test_a_silent_holder_is_replaced_after_a_whole_lease_and_its_late_write_is_refused",
        "test_a_task_that_ends_while_a_page_is_read_is_on_it_once",
        "test_an_attempt_going_on_from_the_later_state_cannot_write_after_a_rollback",
        "test_an_error_is_told_as_it_is_when_the_store_is_away_and_the_lease_is_not_kept",
        "test_an_event_of_an_unlisted_kind_is_not_written",
        "test_an_item_costs_its_own_bytes_however_long_the_list_is",
        "test_changes_are_told_in_order_and_none_is_lost_in_one_millisecond",
        "test_killed_between_write_and_answer_a_repeat_finds_the_one_effect",
        "test_writers_of_every_kind_at_once_lose_nothing",
    },
    "it runs code, in a worker or by app.run": {
        "test_a_callback_that_was_kept_when_its_process_died_is_found_by_looking",
        "test_a_decision_with_a_key_never_answers_the_next_question",
        "test_a_durable_function_that_dies_before_it_could_record_an_item_does_not_add_it_twice",
        "test_a_file_another_task_and_a_command_are_waited_for",
        "test_a_fork_with_a_key_is_made_once",
        "test_a_moment_ends_a_pause_once_and_late_if_nobody_was_there",
        "test_a_server_is_asked_until_its_answer_is_as_expected_also_after_a_restart",
        "test_a_task_that_only_yields_goes_on_when_there_is_somebody",
        "test_a_task_that_waits_for_another_goes_on_when_that_one_ends_not_at_its_next_look",
        "test_a_worker_runs_no_command_of_the_store_unless_it_was_told_to",
        "test_an_approval_is_reminded_of_and_expires_into_its_default",
        "test_children_are_found_by_their_parent_and_counted",
        "test_durable_functions_are_found_by_function_version_queue_and_parent",
        "test_spans_that_end_beside_appends_lose_no_item",
    },
    "it names namespaces: a key has one": {
        "test_namespaces_do_not_see_each_other",
        "test_states_are_compared_with_now_and_with_another_tasks",
        "test_tasks_that_became_history_and_other_namespaces_are_in_no_page",
    },
    "JSON has no bytes and no classes of one's own": {
        "test_a_state_too_large_for_one_row_goes_in_chunks_and_comes_back",
        "test_a_state_whose_classes_are_not_known_here_is_shown_by_its_fields",
        "test_lists_grow_wherever_they_are_and_whatever_is_added",
    },
    "what is written is signed with the key of the caller": {
        "test_a_callback_resumes_the_task_that_waits_or_will",
        "test_a_task_is_created_once_and_found_again",
    },
    "a write without an attempt takes the lease for this one call": {
        "test_a_cancelled_task_takes_no_more_writes_from_the_attempt_that_was_going_on",
        "test_a_notebook_that_opens_its_task_again_goes_on_with_the_lease_it_has",
    },
    "a key belongs to one verb, and used for the next question it is refused": {
        "test_a_checkpoint_is_stored_once_and_the_same_one_is_returned",
        "test_a_late_repeat_does_not_end_what_went_on_since",
    },
    "its clock moves while requests are on their way": {
        "test_wait_for_returns_when_another_app_gets_there_and_tells_what_it_got_otherwise",
    },
    "it reads the words of an error, and a server has others": {
        "test_a_decision_is_merged_into_the_state_and_the_second_is_a_conflict",
    },
    "checksums of checkpoints are not told": {
        "test_checkpoints_are_listed_in_order_with_what_was_stored_and_the_last_is_the_state",
    },
}
LEFT_OUT = set[str]().union(*NOT_HERE.values())


def _tests_of(module: ModuleType) -> dict[str, object]:
    """The tests of a module that take a store."""
    found = {name: test for name, test in vars(module).items() if name.startswith("test_") and callable(test)}
    return {name: test for name, test in found.items() if STORES & inspect.signature(test).parameters.keys()}


for _module in MODULES:
    globals().update({name: test for name, test in _tests_of(_module).items() if name not in LEFT_OUT})


def test_what_is_left_out_exists_and_no_two_tests_have_one_name():
    names = [name for module in MODULES for name in _tests_of(module)]
    assert len(names) == len(set(names))
    assert set(names) >= LEFT_OUT


@pytest.fixture
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    if "clock" in request.fixturenames:
        request.getfixturevalue("clock")  # first: the server's clock is the one that the test moves
    server = make_app(f"memory://{os.urandom(6).hex()}")
    server._guard, server._identity = None, Known(ALL)
    with listening(server) as address:
        yield address


@pytest.fixture
def shared_url(url: str) -> str:
    return url


@pytest.fixture
def quick_url(url: str) -> str:
    return url
