"""The way to the server: options, TLS, credentials, and our own queries on that connection."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "upstream": ("LoginFailed", "Upstream"),
    },
    modules=("server_queries", "upstream"),
)
