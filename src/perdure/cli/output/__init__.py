"""Output for people and programs: tables, colours, words, JSON."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "blocks": ("Block", "Cell", "Fields", "Line", "Piece", "Table", "line", "safe"),
        "live_view": ("View", "bar", "follow", "watch"),
    },
    modules=("blocks", "drawing", "plan_text", "words"),
)
