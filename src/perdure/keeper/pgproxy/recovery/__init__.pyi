"""The traces that outlive the proxy, and how the next process takes the session up or finds its outcome.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.keeper.pgproxy.recovery.adoption import Adopted, Unusable, adopt
from perdure.keeper.pgproxy.recovery.notebook import IDLE, LARGE, Notebook, SENDING, SENT, to_json
from perdure.keeper.pgproxy.recovery.parking import Parking, parking_of
from perdure.keeper.pgproxy.recovery.postmortem import Finding, examine, server_of
from perdure.keeper.pgproxy.recovery.session_rebuild import Differs, rebuild
from perdure.keeper.pgproxy.recovery.trace import NAME, Server, Trace
from perdure.keeper.pgproxy.recovery.witness import ONLY_NUMBER, CommitWitness
from perdure.keeper.pgproxy.recovery import postmortem
__all__ = [
    "Adopted",
    "Unusable",
    "adopt",
    "IDLE",
    "LARGE",
    "Notebook",
    "SENDING",
    "SENT",
    "to_json",
    "Parking",
    "parking_of",
    "Finding",
    "examine",
    "server_of",
    "Differs",
    "rebuild",
    "NAME",
    "Server",
    "Trace",
    "ONLY_NUMBER",
    "CommitWitness",
    "postmortem",
]
