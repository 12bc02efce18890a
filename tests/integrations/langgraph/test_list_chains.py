"""However a list changes from version to version, each version is read back as it was, from few rows."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from perdure.integrations.langgraph.list_chains import RUN, Chain, Item, chain_of, extend, row_of


def items(*numbers: int) -> list[Item]:
    return [Item("msgpack", f"{number:08}".encode()) for number in numbers]


edits = st.lists(
    st.tuples(st.sampled_from(["append", "append", "append", "drop", "change", "clear"]), st.integers(0, 10**6)),
    max_size=120,
)


@given(edits)
def test_each_version_is_read_back_as_it_was_written(changes: list[tuple[str, int]]) -> None:
    rows: dict[str, dict[str, object]] = {}
    chain: Chain | None = None
    wanted: dict[str, list[Item]] = {}
    now = items(1, 2)
    for number, (kind, argument) in enumerate(changes):
        if kind == "append":
            now = [*now, *items(*range(argument, argument + 1 + argument % 3))]
        elif kind == "drop":
            now = now[: argument % (len(now) + 1)]
        elif kind == "change" and now:
            at = argument % len(now)
            now = [*now[:at], *items(-argument), *now[at + 1 :]]
        elif kind == "clear":
            now = items(argument)
        version = f"{number:08}.{random.getrandbits(32):08x}"
        chain = extend(chain, version, now)
        rows[version], wanted[version] = row_of(chain), list(now)
    for version, expected in wanted.items():
        found = chain_of(version, rows)
        assert found is not None and list(found.items) == expected and found.head == version


def test_a_thousand_turns_are_read_from_few_rows_and_each_item_is_stored_few_times() -> None:
    chain: Chain | None = None
    rows = {}
    for turn in range(1000):
        chain = extend(chain, f"{turn:08}", items(*range(turn + 2)))
        rows[f"{turn:08}"] = row_of(chain)
    assert chain is not None
    assert len(chain.links) < 2 * RUN
    assert sum(len(row["items"]) for row in rows.values()) < 3.5 * 1000


def test_a_version_whose_row_is_gone_is_not_made_up() -> None:
    first = extend(None, "1", items(1, 2))
    second = extend(first, "2", items(1, 2, 3))
    assert chain_of("2", {"2": row_of(second)}) is None


def test_a_link_that_spans_a_run_keeps_no_item_that_was_changed_within_the_run() -> None:
    now, chain, rows = items(*range(100)), None, {}
    for number in range(RUN + 8):
        now = [*now, *items(1000 + number)]
        if number == RUN // 2:
            now[95] = items(-1)[0]  # inside what every link before it keeps
        chain = extend(chain, f"{number:08}", now)
        rows[f"{number:08}"] = row_of(chain)
    found = chain_of(f"{RUN + 7:08}", rows)
    assert found is not None and list(found.items) == now
    assert any(row.get("level") == 1 for row in rows.values())
