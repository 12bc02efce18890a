"""Metrics: the figures that a server counts about itself.

Written by tools/make_doors.py from the table in __init__.py.
"""

from perdure.server.telemetry.catalogue import CATALOGUE, Metric, as_page as metrics_page, full_name
from perdure.server.telemetry.event_tally import EventTally
from perdure.server.telemetry.figures import Figures
from perdure.server.telemetry.metrics import Sight, Telemetry
from perdure.server.telemetry.request_span import tell_request
__all__ = [
    "CATALOGUE",
    "Metric",
    "metrics_page",
    "full_name",
    "EventTally",
    "Figures",
    "Sight",
    "Telemetry",
    "tell_request",
]
