"""Metrics: the figures that a server counts about itself."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "catalogue": ("CATALOGUE", "Metric", "as_page as metrics_page", "full_name"),
        "event_tally": ("EventTally",),
        "figures": ("Figures",),
        "metrics": ("Sight", "Telemetry"),
        "request_span": ("tell_request",),
    },
)
