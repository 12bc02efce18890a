"""Access control: the guard checks a request's own lines, and the identities check its credential."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "guard": ("BrowserGuard",),
        "guard_rules": (
            "Network",
            "ServerAddress",
            "client_address",
            "is_in",
            "is_loopback",
            "read_network",
            "read_origin",
        ),
        "identity": ("Identities", "cookie_name", "cookie_of"),
        "rates": ("Rates",),
    },
)
