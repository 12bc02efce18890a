"""Which checkpoints may go: the rules, on rows alone, thrown at random histories."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure._ground.encoding import deltas as frames
from perdure._store import FrameRow
from perdure._tasks.checkpoints.retention import Plan, Policy, plan
from perdure.errors import InvalidInput
from perdure.types import Config

SECOND = 1000
NOW = 1_000_000 * SECOND
LIMIT = 1 << 20


def row(seq: int, *, base: int | None = None, age: int = 0, stored: int = 100, **other: object) -> FrameRow:
    columns = {"label": "", "valid": True, "superseded": False, "pinned": False, "size": 1000, **other}
    return FrameRow(
        seq=seq,
        line=1,
        parent=None,
        base=base,
        at=NOW - age * SECOND,
        cause="explicit",
        depth=0,
        author="{}",
        stored=stored,
        chain_size=0,
        chain_length=0,
        position=0,
        chunks=0,
        frame=b"",
        **columns,  # type: ignore[arg-type]
    )


def chain(count: int) -> list[FrameRow]:
    """Checkpoints 0 to count, each a delta of the one before, each a second older than the next."""
    return [row(seq, base=seq - 1 if seq else None, age=count - seq) for seq in range(count + 1)]


def kept(rows: list[FrameRow], made: Plan) -> list[int]:
    return [each.seq for each in rows if each.seq not in made.prune]


@pytest.mark.req("R101")
def test_the_last_n_stay_with_what_is_pinned_or_labelled() -> None:
    rows = chain(10)
    rows[3] = rows[3]._replace(pinned=True)
    rows[5] = rows[5]._replace(label="before the migration")
    made = plan(rows, 10, Policy(keep_last=2), NOW)
    assert kept(rows, made) == [0, 3, 5, 9, 10]


@pytest.mark.req("R102")
def test_what_builds_on_something_that_goes_is_made_a_keyframe_first() -> None:
    rows = chain(10)
    rows[3] = rows[3]._replace(pinned=True)
    made = plan(rows, 10, Policy(keep_last=2), NOW)
    assert made.rebase == (3, 9)
    assert made.prune == (8, 7, 6, 5, 4, 2, 1)


@pytest.mark.req("R100")
def test_what_is_too_old_goes_and_the_state_stays_however_old_it_is() -> None:
    rows = chain(10)
    assert kept(rows, plan(rows, 10, Policy(keep_for=timedelta(seconds=4)), NOW)) == [0, 7, 8, 9, 10]
    assert kept(rows, plan(rows, 10, Policy(keep_for=timedelta(seconds=4)), NOW + 3600 * SECOND)) == [0, 10]


@pytest.mark.req("R101")
def test_bytes_are_counted_as_they_will_be_when_keyframes_have_replaced_deltas() -> None:
    rows = [row(0, stored=1000), *(row(seq, base=seq - 1, stored=400) for seq in range(1, 11))]
    made = plan(rows, 10, Policy(keep_bytes=3700), NOW)
    # Checkpoint 0 takes 1,000 bytes, the oldest one left becomes a keyframe of 1,000, and 400 each stay of four.
    assert kept(rows, made) == [0, *range(6, 11)]
    assert made.rebase == (6,)
    assert made.bytes_freed == 5000 - 3600


@pytest.mark.req("R101")
def test_a_size_that_cannot_be_reached_costs_no_checkpoint_for_nothing() -> None:
    rows = [row(0, stored=1000), *(row(seq, base=seq - 1, stored=100) for seq in range(1, 11))]
    assert plan(rows, 10, Policy(keep_bytes=1500), NOW).prune == ()


def test_what_was_rolled_back_does_not_push_out_what_can_be_resumed_from() -> None:
    rows = [each._replace(superseded=4 <= each.seq <= 8) for each in chain(10)]
    made = plan(rows, 10, Policy(keep_last=3), NOW)
    assert kept(rows, made) == [0, 3, 8, 9, 10]


def test_without_limits_nothing_goes() -> None:
    assert plan(chain(10), 10, Policy(finished_for=timedelta(0)), NOW) == Plan((), (), 0)


def test_a_task_s_own_config_goes_before_the_policy() -> None:
    policy = Policy(keep_last=50, keep_for=timedelta(days=1), keep_bytes=7)
    assert policy.of_task(Config(keep_last=3)) == Policy(keep_last=3, keep_for=timedelta(days=1), keep_bytes=7)
    assert policy.of_task(Config()) == policy


@pytest.mark.parametrize(
    "limits", [{"keep_last": 0}, {"keep_bytes": -1}, {"keep_for": timedelta(-1)}, {"finished_for": timedelta(-1)}]
)
def test_a_policy_that_cannot_be_meant_is_refused(limits: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        Policy(**limits)  # type: ignore[arg-type]


# ── random histories ─────────────────────────────────────────────────────────────────────────────


class History:
    """Checkpoints with their real frames, as the store would have them."""

    def __init__(self, states: list[bytes], keyframes: set[int], marks: list[tuple[bool, bool, bool, bool]]) -> None:
        self.states = dict(enumerate(states))
        self.frames: dict[int, bytes] = {}
        self.rows: dict[int, FrameRow] = {}
        for seq, state in self.states.items():
            change = frames.delta(states[seq - 1], state) if seq and seq not in keyframes else None
            self.frames[seq] = state if change is None else change
            pinned, labelled, invalid, superseded = marks[seq % len(marks)]
            self.rows[seq] = row(
                seq,
                base=None if change is None else seq - 1,
                age=len(states) - seq,
                stored=len(self.frames[seq]),
                size=len(state),
                pinned=pinned,
                label="named" if labelled else "",
                valid=not invalid,
                superseded=superseded,
            )

    def materialise(self, seq: int) -> bytes:
        base = self.rows[seq].base
        if base is None:
            return self.frames[seq]
        return frames.apply(self.materialise(base), self.frames[seq], limit=LIMIT)

    def check(self) -> None:
        for seq in self.rows:
            assert self.materialise(seq) == self.states[seq]

    def rebase(self, seq: int) -> None:
        self.frames[seq] = self.materialise(seq)
        self.rows[seq] = self.rows[seq]._replace(base=None)

    def prune(self, seq: int) -> None:
        assert not any(other.base == seq for other in self.rows.values()), "something builds on it"
        del self.rows[seq]


limits = st.builds(
    Policy,
    keep_last=st.none() | st.integers(1, 12),
    keep_for=st.none() | st.integers(0, 30).map(lambda seconds: timedelta(seconds=seconds)),
    keep_bytes=st.none() | st.integers(0, 6000),
)
changes = st.lists(st.tuples(st.integers(0, 400), st.binary(max_size=12)), min_size=1, max_size=25)
flags = st.tuples(*[st.integers(0, 9).map(lambda n: n == 0)] * 4)


@pytest.mark.req("R102")
@given(changes, st.sets(st.integers(0, 25)), st.lists(flags, min_size=1, max_size=7), limits, st.data())
def test_whatever_goes_all_that_stays_reads_as_before_at_every_step(
    edits: list[tuple[int, bytes]],
    keyframes: set[int],
    marks: list[tuple[bool, bool, bool, bool]],
    policy: Policy,
    data: st.DataObject,
) -> None:
    states = [bytes(range(256)) * 2]
    for at, new in edits:
        states.append(states[-1][:at] + new + states[-1][at + len(new) // 2 :])
    history = History(states, keyframes, marks)
    state_seq = data.draw(st.integers(0, len(states) - 1))
    before = dict(history.rows)
    made = plan(list(history.rows.values()), state_seq, policy, NOW)
    history.check()
    for seq in made.rebase:
        history.rebase(seq)
        history.check()
    for seq in made.prune:
        history.prune(seq)
        history.check()
    assert {0, state_seq} <= history.rows.keys()
    assert all(seq in history.rows for seq, each in before.items() if each.pinned or each.label)
    again = plan(list(history.rows.values()), state_seq, Policy(keep_last=policy.keep_last), NOW)
    assert again.prune == (), "a second time there is nothing left to do"
