"""Live things that outlive the agent: shells, services, files, sessions; what came back, and how."""

import sys

from perdure.errors import NotAllowed

if sys.platform == "win32":
    raise NotAllowed(
        "perdure's live runtime does not work on Windows: it needs Unix terminals and sockets",
        kept="everything else works: tasks, checkpoints, durable functions",
        do="run the agent in WSL to keep shells and services",
    )

from perdure._runtime.runtimes import Runtime, runtime, runtime_of
from perdure._runtime.shell import CommandResult, Output, Shell
from perdure._runtime.units import Unit

__all__ = ["CommandResult", "Output", "Runtime", "Shell", "Unit", "runtime", "runtime_of"]
