"""Tests of `app.tasks` a further time, through a server: each gives the address of a server as its store.

A selection, not the whole suite. Tests that look into the store, use several namespaces or move a clock cannot run this
way. `app.tasks.changes` and the checksums of checkpoints are not given through a server. The tests of pauses, attempts,
state writes and lifecycle have not been tried here yet; test_tasks.py and test_client*.py cover those verbs.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from perdure.server import make_app
from tests.support.asking import ALL, Known
from tests.support.live_server import listening
from tests.tasks.test_checkpoint_door import (  # noqa: F401
    test_a_part_of_a_checkpoint_is_given_by_its_path,
)
from tests.tasks.test_history import (  # noqa: F401
    test_a_finished_task_cannot_be_rolled_back,
    test_a_fork_begins_with_its_parents_state_at_a_checkpoint_and_the_parent_does_not_notice,
    test_a_rollback_makes_an_earlier_checkpoint_the_state_and_keeps_the_later_ones_readable,
    test_after_going_forward_again_a_damaged_checkpoint_falls_back_to_what_led_to_it,
    test_diff_names_what_changed_between_two_checkpoints,
    test_going_back_to_a_superseded_checkpoint_makes_all_that_led_to_it_good_again,
    test_invalidated_checkpoints_are_passed_over_and_the_newest_valid_one_is_the_state,
    test_plan_memory_partial_output_and_pending_tool_calls_come_back_as_their_own_fields,
    test_resume_from_an_earlier_checkpoint_with_a_patch_is_one_write,
    test_unknown_checkpoints_are_not_found,
)
from tests.tasks.test_listing import (  # noqa: F401
    test_pages_show_every_task_once_while_others_are_added,
)
from tests.tasks.test_pages import (  # noqa: F401
    test_a_summary_tells_what_the_row_tells,
    test_archived_tasks_are_listed_and_counted_only_when_asked_for,
    test_ids_that_begin_with_the_text_come_first_and_nothing_twice,
    test_tasks_are_counted_by_status_and_reason,
    test_what_changed_last_comes_first,
)


@pytest.fixture
def url(tmp_path) -> Iterator[str]:
    server = make_app(f"sqlite://{tmp_path}/store/perdure.db")
    server._guard, server._identity = None, Known(ALL)
    with listening(server) as address:
        yield address


@pytest.fixture
def shared_url(url) -> str:
    return url


@pytest.fixture
def quick_url(url) -> str:
    return url
