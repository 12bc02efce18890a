"""What a task that depends on others can do now. Pure.

A task is blocked while one of its dependencies has not completed. When one has failed or was cancelled, the task's
policy decides: it waits (a failed task can be resumed and complete after all), fails too, or is skipped: cancelled
without having begun.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

Policy = Literal["wait", "fail", "skip"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
Next = Literal["begin", "wait", "fail", "skip"]


def what_follows(dependencies: Mapping[str, str | None], policy: Policy) -> Next:
    """What a pending task does, by the statuses of its dependencies; None stands for one that does not exist yet."""
    if all(status == "completed" for status in dependencies.values()):
        return "begin"
    if policy != "wait" and any(status in ("failed", "cancelled") for status in dependencies.values()):
        return policy
    return "wait"


def what_blocks(dependencies: Mapping[str, str | None]) -> list[str]:
    """The blocking dependencies, each in a few words."""
    return [
        f"task {id!r} to complete ({status or 'not there yet'})"
        for id, status in dependencies.items()
        if status != "completed"
    ]


def find_circle(graph: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Tasks that wait for each other for ever, first and last the same; empty if there are none."""
    done: set[str] = set()
    for start in graph:
        path: list[str] = []
        on_path: set[str] = set()
        stack = [(start, False)]
        while stack:
            id, is_left = stack.pop()
            if is_left:
                path.pop()
                on_path.discard(id)
                done.add(id)
            elif id in on_path:
                return (*path[path.index(id) :], id)
            elif id not in done:
                path.append(id)
                on_path.add(id)
                stack += [(id, True), *((further, False) for further in graph.get(id, ()))]
    return ()
