"""Live things that outlive the agent: shells, services, files, sessions; what came back, and how."""

import sys

from perdure.errors import NotAllowed

if sys.platform == "win32":
    raise NotAllowed(
        "perdure's live runtime does not work on Windows: it needs Unix terminals and sockets",
        kept="everything else works: tasks, checkpoints, durable functions",
        do="run the agent in WSL to keep shells and services",
    )

from perdure._runtime.files import KeptFile, KeptListener, KeptPipe
from perdure._runtime.output import Output
from perdure._runtime.ready import Ready, command, http, log_line, port
from perdure._runtime.request import KeptRequest
from perdure._runtime.runtimes import Runtime, runtime, runtime_of
from perdure._runtime.secrets import Secret
from perdure._runtime.service import Service, ServiceState
from perdure._runtime.shell import CommandResult, Shell
from perdure._runtime.units import Unit

__all__ = [
    "CommandResult",
    "KeptFile",
    "KeptListener",
    "KeptPipe",
    "KeptRequest",
    "Output",
    "Ready",
    "Runtime",
    "Secret",
    "Service",
    "ServiceState",
    "Shell",
    "Unit",
    "command",
    "http",
    "log_line",
    "port",
    "runtime",
    "runtime_of",
]
