"""What a PerdureSaver promises beyond LangGraph's own suite: leases, few bytes, whole chains, any thread id."""

from __future__ import annotations

import operator
import os
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph

from perdure import Perdure
from perdure._ground.bridge import Nap
from perdure.errors import InvalidInput, LeaseHeld, LeaseLost
from perdure.integrations.langgraph import KeptShellBackend, PerdureSaver, shell_backend
from perdure.sync import Perdure as BlockingPerdure
from tests.support.processes import Link, Nursery, say


class Turns(TypedDict):
    turns: Annotated[list[str], operator.add]


def talk(saver: PerdureSaver) -> Any:
    def turn(state: Turns) -> dict[str, list[str]]:
        return {"turns": [f"answer {len(state['turns'])} {os.urandom(64).hex()}"]}

    return StateGraph(Turns).add_node("turn", turn).add_edge(START, "turn").compile(checkpointer=saver)


def at(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


@pytest.mark.parametrize("thread", ["t", "a/b", "..", "é🎉", "x" * 900, "%2F", "a:b c", "\u202e"])
def test_any_text_is_a_thread_id(tmp_path: Path, thread: str) -> None:
    with BlockingPerdure(f"sqlite://{tmp_path}/p.db") as app:
        graph = talk(PerdureSaver(app))
        graph.invoke({"turns": ["hello"]}, at(thread))
        graph.invoke({"turns": ["again"]}, at(thread))
        assert len(graph.get_state(at(thread)).values["turns"]) == 4
        assert graph.get_state(at(thread + "x")).values == {}
        PerdureSaver(app).delete_thread(thread)
        assert graph.get_state(at(thread)).values == {}


def test_a_process_that_never_saw_a_thread_adds_to_its_lists_and_reads_each_version(tmp_path: Path) -> None:
    """A hundred turns, each by a saver that knows nothing; every checkpoint of the past is as it was."""
    past: list[list[str]] = []
    with BlockingPerdure(f"sqlite://{tmp_path}/p.db") as app:
        for number in range(100):
            graph = talk(PerdureSaver(app))
            past.append(graph.invoke({"turns": [f"question {number}"]}, at("t"))["turns"])
        history = [one.values["turns"] for one in talk(PerdureSaver(app)).get_state_history(at("t")) if not one.next]
    assert history == past[::-1]


def test_a_conversation_grows_by_what_is_added(tmp_path: Path) -> None:
    with BlockingPerdure(f"sqlite://{tmp_path}/p.db") as app:
        saver = PerdureSaver(app)
        graph = talk(saver)
        for number in range(200):
            graph.invoke({"turns": [f"question {number}"]}, at("t"))
        rows = _stored_items(app)
    assert rows < 4 * 400  # each item is stored a few times, not two hundred times


def _stored_items(app: BlockingPerdure) -> int:
    return sum(len(found.value.get("items", ())) for found in app.storage.scan("execution/") if "/lg/v/" in found.key)


async def test_a_second_process_on_a_thread_is_told_who_has_it(shared_url: str, children: Nursery) -> None:
    async with Perdure(shared_url) as app:
        async with PerdureSaver(app).thread("t"):
            told = children.run(_enters, shared_url)
        assert told == f"LeaseHeld pid {os.getpid()}"
        assert children.run(_enters, shared_url) == "entered"


async def _enters(link: Link, url: str) -> str:
    async with Perdure(url) as app:
        try:
            async with PerdureSaver(app).thread("t"):
                return "entered"
        except LeaseHeld as held:
            return f"LeaseHeld pid {held.pid}"


def test_a_process_that_lost_its_thread_writes_nothing(shared_url: str, children: Nursery) -> None:
    slow = children.start(_talks_when_told, shared_url)
    assert slow.heard() == "holds"
    assert children.run(_takes_over, shared_url) == 2
    slow.tell()
    assert slow.heard() == "LeaseLost"
    assert children.run(_turns, shared_url) == 2


async def _talks_when_told(link: Link, url: str) -> str:
    async with Perdure(url) as app:
        saver = PerdureSaver(app)
        try:
            async with saver.thread("t"):
                say(link, "holds")
                link.recv()
                await talk(saver).ainvoke({"turns": ["late"]}, at("t"), durability="sync")
        except LeaseLost:
            return "LeaseLost"
    return "wrote"


async def _takes_over(link: Link, url: str) -> int:
    async with Perdure(url) as app:
        saver = PerdureSaver(app)
        async with saver.thread("t", take_over=True):
            return len((await talk(saver).ainvoke({"turns": ["first"]}, at("t")))["turns"])


async def _turns(link: Link, url: str) -> int:
    async with Perdure(url) as app:
        return len((await talk(PerdureSaver(app)).aget_state(at("t"))).values["turns"])


def test_a_graph_without_a_thread_id_gets_a_sentence(tmp_path: Path) -> None:
    with BlockingPerdure(f"sqlite://{tmp_path}/p.db") as app:
        with pytest.raises((InvalidInput, ValueError), match="thread"):
            talk(PerdureSaver(app)).invoke({"turns": []}, {"configurable": {}})
        with pytest.raises(InvalidInput, match="strategy"):
            PerdureSaver(app).prune(["t"], strategy="some")


async def test_a_deep_agents_shell_keeps_its_folder_and_variables_through_its_death(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite://{folder}/p.db"
    (folder / "work").mkdir()
    async with Perdure(url) as app:
        backend = KeptShellBackend(app, "t", root_dir=folder)
        assert (await backend.aexecute("cd work && X=41")).exit_code == 0
    async with Perdure(url) as app:  # another life of the agent
        backend = KeptShellBackend(app, "t", root_dir=folder)
        told = await backend.aexecute("echo $((X+1)) in ${PWD##*/}; (exit 3)")
        assert (told.output.strip(), told.exit_code, told.truncated) == ("42 in work", 3, False)
        late = await backend.aexecute("until [ -e go ]; do sleep 0.02; done", timeout=1)
        assert late.exit_code is None and "still running" in late.output
        assert "was not run" in (await backend.aexecute("echo no", timeout=1)).output

        def look_again(seconds: float) -> Nap:  # the backend has found the shell busy: now its command may end
            (folder / "work" / "go").touch()
            return Nap(seconds)

        monkeypatch.setattr(shell_backend, "Nap", look_again)
        monkeypatch.setattr(shell_backend, "_PROMPT_SECONDS", 60.0)
        many = await backend.aexecute("seq 200000")
        assert many.truncated and "left out" in many.output and many.output.rstrip().endswith("200000")
        (runtime_units,) = [await (await app.runtime("lg:t")).units()]
        for unit in runtime_units:
            await unit.end()
