"""The story that `perdure demo` tells and a test checks: an agent dies at step nine, with everything it had open.

play.py        what happens, in order, and the proof
agent.py       the agent, as a user would write it; database.py is what it migrates
stage.py       what it finds: a repository, a file, a table; and its processes
world.py       a service and a model outside, that count; devserver.py is the server it starts
dashboard.py   a server over the demo's store, for a person who watches

Names are imported when they are first used: the agent is run as a program of its own, out of this folder.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perdure.demo.agent import Stage
    from perdure.demo.dashboard import running_dashboard
    from perdure.demo.play import Proof, perform, traces_of_password
    from perdure.demo.stage import agent_on, set_stage
    from perdure.demo.world import running_world

_HOMES = {
    "Proof": "play",
    "Stage": "agent",
    "agent_on": "stage",
    "perform": "play",
    "running_dashboard": "dashboard",
    "running_world": "world",
    "set_stage": "stage",
    "traces_of_password": "play",
}

__all__ = [
    "Proof",
    "Stage",
    "agent_on",
    "perform",
    "running_dashboard",
    "running_world",
    "set_stage",
    "traces_of_password",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(name)
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
