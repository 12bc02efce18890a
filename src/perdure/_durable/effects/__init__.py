"""Effects: declared, walked from intent to outcome, settled when uncertain, undone."""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "calls_on_the_spot": ("Current", "call", "current"),
        "declaration": (
            "DID_NOT_HAPPEN",
            "DidNotHappen",
            "EffectCall",
            "Happened",
            "MayHaveHappened",
            "UNKNOWN",
            "home_of",
            "idempotency_headers",
            "idempotency_key",
            "remember",
        ),
        "effect_decorator": ("Effect", "effect"),
        "effect_walk": ("Walk",),
        "ledger": ("Account", "EffectRecord", "UNDO", "accounts", "not_known_to", "read_ledger", "shown_of"),
        "settlement": ("GIVEN_UP_AT_WORK", "KNOWN", "is_at_work", "may_run_until"),
        "uncertain_effects": ("Choice", "Effects", "UncertainEffect"),
        "undo": ("failure_of", "note_failure", "take_back", "unknown_here"),
    },
)
