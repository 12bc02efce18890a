"""The surroundings of a task in this process: environment, units, fingerprints."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "context": ("Context", "Held", "context_of", "keep_context", "narrowed"),
        "fingerprints": ("Finding", "Fingerprint", "Recorded", "record"),
        "paths": ("mapped", "mapping_for"),
        "unit_types": ("Place", "UnitType"),
    },
    modules=("fingerprints",),
)
