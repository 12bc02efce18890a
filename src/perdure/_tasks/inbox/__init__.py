"""The inbox: everything in a namespace that waits for a person, and deciding it."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(__name__, {"inbox": ("Inbox",), "pause_ids": ("is_pause_id",)})
