"""The agent's side of the keeper: finding, starting, asking and replacing it."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "client": ("Client", "client_for"),
        "pending_call": ("Ask",),
        "unit_record": ("Record",),
    },
    modules=("client", "keeper_checkup", "keeper_control", "keeper_place"),
)
