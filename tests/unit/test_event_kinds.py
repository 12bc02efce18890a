"""The names that events have outside of the store."""

from __future__ import annotations

import re

from perdure._model import EVENT_NAMES, event_kind, event_name


def test_each_kind_of_event_has_one_dotted_name_and_comes_back_from_it():
    assert len(set(EVENT_NAMES.values())) == len(EVENT_NAMES)
    for kind, name in EVENT_NAMES.items():
        assert re.fullmatch(r"(task|attempt|checkpoint|pause)\.[a-z_]+", name)
        assert (event_name(kind), event_kind(name)) == (name, kind)


def test_a_kind_of_a_later_version_says_nothing_outside():
    assert event_name("<script>") == "task.other"
