"""What a task leaves behind: checkpoints, the journal, events, frames and units, and changes between two states."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(__name__, {"checkpoint": ("Checkpoint",)})
