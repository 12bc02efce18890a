"""What a task and a namespace's tasks are made of: the part that every room inside this one knows.

`Task` and `Tasks` derive from these classes and add the verbs of users. The functions here are for the rooms above:
users see no attribute of perdure's own on `app.tasks` or on a task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perdure._model import Status
    from perdure._store import Store


class TasksCore:
    """The tasks of one namespace in one store."""

    _store: Store


class TaskCore:
    """One task: its id, the store it is in, and who works on it."""

    id: str
    uid: str
    status: Status
    state: Any
    created: bool
    _store: Store
    _agent: str

    def _event(self, kind: str, data: Any) -> dict[str, Any]:
        return self._store.event(self.uid, kind, data, self._agent)


def store_of(owner: TasksCore | TaskCore) -> Store:
    """The store that the tasks, or the task, are in."""
    return owner._store


def agent_of(task: TaskCore) -> str:
    """The name of the agent that the task was created for."""
    return task._agent


def event_of(task: TaskCore, kind: str, data: Any) -> dict[str, Any]:
    """The columns of an event that is added to the task's chain."""
    return task._event(kind, data)
