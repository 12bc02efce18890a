"""LangGraph's savers beside ours: bytes, milliseconds a turn, and the time to read the newest checkpoint.

    python benchmarks/langgraph_savers.py [--turns 500]

Two loads: *one*, where a single invoke makes all turns, and *chat*, an invoke for each turn. Each turn adds a message
of about 1 kB of words.
"""

from __future__ import annotations

import argparse
import itertools
import operator
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph

from perdure._ground import zstd
from perdure.integrations.langgraph import PerdureSaver
from perdure.sync import Perdure

LOOKED_AT = (10, 100, 500)
WORDS = [
    f"{a}{b}" for a in ("re", "un", "con", "de", "pro") for b in ("fine", "tain", "vert", "scribe", "mote", "late")
]


class Chat(TypedDict):
    messages: Annotated[list[Any], operator.add]


def message(chance: random.Random) -> AIMessage:
    return AIMessage(" ".join(chance.choices(WORDS, k=140)))


@contextmanager
def ours(folder: Path) -> Iterator[Any]:
    with Perdure(f"sqlite://{folder}/p.db") as app:
        yield PerdureSaver(app)


@contextmanager
def theirs(folder: Path) -> Iterator[Any]:
    with SqliteSaver.from_conn_string(str(folder / "s.db")) as saver:
        yield saver


def measure(make: Callable[[Path], AbstractContextManager[Any]], turns: int, is_chat: bool) -> dict[str, float]:
    chance, took = random.Random(7), []  # noqa: S311
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with make(folder) as saver:

            def turn(state: Chat) -> dict[str, list[Any]]:
                took.append(time.perf_counter())
                return {"messages": [message(chance)]}

            def more(state: Chat) -> str:
                return "turn" if not is_chat and len(state["messages"]) < turns else "__end__"

            graph = (
                StateGraph(Chat)
                .add_node("turn", turn)
                .add_edge(START, "turn")
                .add_conditional_edges("turn", more)
                .compile(checkpointer=saver)
            )
            config: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": turns + 10}
            for _ in range(turns if is_chat else 1):
                graph.invoke({"messages": []}, config, durability="sync")
            took.append(time.perf_counter())
            begun = time.perf_counter()
            for _ in range(5):
                found = saver.get_tuple(config)
            read = (time.perf_counter() - begun) / 5
            assert len(found.checkpoint["channel_values"]["messages"]) == turns
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    each = [after - before for before, after in itertools.pairwise(took)]
    told = {f"turn {n}": 1000 * sorted(each[max(0, n - 10) : n])[5] for n in LOOKED_AT if n <= turns}
    return {"kB": size / 1000, **told, "get_tuple": 1000 * read}


def floor(turns: int) -> float:
    """What zstd makes of all that was added."""
    chance = random.Random(7)  # noqa: S311
    return len(zstd.pack("".join(str(message(chance).content) for _ in range(turns)).encode(), 3)) / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=500, help="turns of each load (default: 500)")
    turns = parser.parse_args().turns
    sys.stdout.write(f"zstd of all messages: {floor(turns):.0f} kB; milliseconds and kB of {turns} turns\n")
    for is_chat in (False, True):
        for name, make in (("perdure", ours), ("SqliteSaver", theirs)):
            found = measure(make, turns, is_chat)
            cells = "  ".join(f"{what} {value:,.1f}" for what, value in found.items())
            sys.stdout.write(f"{'chat' if is_chat else 'one ':5} {name:12} {cells}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
