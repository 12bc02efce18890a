"""What a task waits for: pauses, questions, tokens, schedules and triggers, and how that is told."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(__name__, {"pause": ("Pause", "REASONS", "Reason")})
