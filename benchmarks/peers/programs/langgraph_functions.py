"""LangGraph with the savers it ships: a step is a turn of a graph of one node, and its checkpoint is the record.

`chain` uses the durability `async`, LangGraph's default, and `waited` uses `sync`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypedDict

import saver_turns
from kit import STEPS_IN_CROWD, WARM, Clock, LastStep, Place, answer, postgres_durability, sqlite_durability
from langgraph.graph import START, StateGraph

LOADED_AT = time.time()
CONNECTIONS = 10  # of the pool that a crowd shares


class State(TypedDict):
    done: int


def counting(saver: Any, many: int, at_end: Callable[[], None] | None = None) -> Any:
    """A graph that takes so many steps; `at_end` is what one more step does."""

    def step(state: State) -> State:
        if at_end is not None and state["done"] == many:
            at_end()
        return {"done": state["done"] + 1}

    async def step_async(state: State) -> State:
        return step(state)

    turns = many if at_end is None else many + 1

    def more(state: State) -> str:
        return "step" if state["done"] < turns else "__end__"

    from langchain_core.runnables import RunnableLambda

    graph = StateGraph(State).add_node("step", RunnableLambda(step, step_async)).add_edge(START, "step")
    return graph.add_conditional_edges("step", more).compile(checkpointer=saver)


def config(thread: str, many: int) -> Any:
    return {"configurable": {"thread_id": thread}, "recursion_limit": many + 10}


@contextmanager
def opened(place: Place) -> Iterator[Any]:
    if place.is_sqlite:
        from langgraph.checkpoint.sqlite import SqliteSaver

        place.file.parent.mkdir(parents=True, exist_ok=True)
        with SqliteSaver.from_conn_string(str(place.file)) as saver:
            saver.setup()
            yield saver
    else:
        from langgraph.checkpoint.postgres import PostgresSaver

        with PostgresSaver.from_conn_string(place.url) as saver:
            saver.setup()
            yield saver


@asynccontextmanager
async def opened_async(place: Place) -> AsyncIterator[Any]:
    if place.is_sqlite:
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        place.file.parent.mkdir(parents=True, exist_ok=True)
        async with AsyncSqliteSaver.from_conn_string(str(place.file)) as saver:
            await saver.setup()
            yield saver
    else:
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
        from psycopg.rows import dict_row
        from psycopg_pool import AsyncConnectionPool

        each = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        async with AsyncConnectionPool(place.url, max_size=CONNECTIONS, kwargs=each, open=False) as pool:
            saver = AsyncPostgresSaver(pool)  # type: ignore[arg-type]
            await saver.setup()
            yield saver


def lasting(durability: str) -> Callable[[Place], float]:
    def line(place: Place) -> float:
        with opened(place) as saver:
            counting(saver, WARM).invoke({"done": 0}, config("warm", WARM), durability=durability)
            graph = counting(saver, place.size)
            with Clock() as clock:
                graph.invoke({"done": 0}, config("chain", place.size), durability=durability)
        return clock.ms

    return line


def crowd(place: Place) -> float:
    async def all_at_once() -> float:
        async with opened_async(place) as saver:
            graph = counting(saver, STEPS_IN_CROWD)
            await graph.ainvoke({"done": 0}, config("warm", STEPS_IN_CROWD))
            threads = [config(f"crowd-{number}", STEPS_IN_CROWD) for number in range(place.size)]
            with Clock() as clock:
                await asyncio.gather(*(graph.ainvoke({"done": 0}, thread) for thread in threads))
            return clock.rate(place.size * STEPS_IN_CROWD)

    return asyncio.run(all_at_once())


def size(place: Place) -> None:
    with opened(place) as saver:
        counting(saver, place.size).invoke({"done": 0}, config(f"sized-{time.time_ns()}", place.size))


def fill(place: Place) -> None:
    def hold() -> None:
        LastStep(resumes=False, loaded_at=LOADED_AT).reached()
        while True:
            time.sleep(1)

    with opened(place) as saver:
        counting(saver, place.size, hold).invoke({"done": 0}, config("recorded", place.size))


def resume(place: Place) -> None:
    last = LastStep(resumes=True, loaded_at=LOADED_AT)
    with opened(place) as saver:
        counting(saver, place.size, last.reached).invoke(None, config("recorded", place.size))


def durability(place: Place) -> str:
    with opened(place) as saver:
        if place.is_sqlite:
            return sqlite_durability(lambda name: saver.conn.execute(f"PRAGMA {name}").fetchone()[0])
        return postgres_durability(lambda name: saver.conn.execute(f"SHOW {name}").fetchone()[name])


LINES = {
    "chain": lasting("async"),
    "waited": lasting("sync"),
    "crowd": crowd,
    "size": size,
    **saver_turns.lines_of(opened),
    "fill": fill,
    "resume": resume,
}

if __name__ == "__main__":
    answer(LINES, durability, ["langgraph", "langgraph-checkpoint-sqlite", "langgraph-checkpoint-postgres"])
