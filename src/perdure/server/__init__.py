"""perdure over HTTP: the verbs of `app.tasks` and its neighbours, with the same guarantees."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "access": ("cookie_of",),
        "assembly": ("make_app",),
        "checkup": ("examine_server",),
        "credentials": ("ApiKey", "ApiKeys", "Session", "Sessions", "Vault", "scopes_of"),
        "process": (
            "Listener",
            "RunningServers",
            "Vitals",
            "bind",
            "bind_unix",
            "has_uvicorn",
            "log_to_stderr",
            "refuse_open_door",
            "require_uvicorn",
            "serve",
        ),
        "desk": ("Desk",),
        "http": ("Answer", "Ask", "Caller", "Handler", "Scope", "Services", "Streamed"),
        "pipeline": ("Server",),
        "settings": ("Settings", "load_settings"),
        "table": ("Raw", "Route", "Unread", "routes"),
    },
)
