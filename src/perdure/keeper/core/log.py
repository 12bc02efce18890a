"""The keeper's log. It is on disk, so text in the form of a secret is left out."""

from __future__ import annotations

import logging

from perdure._ground.secrets.secret_forms import hide_forms


class _Redacting(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return hide_forms(super().format(record))


def begin() -> None:
    """Log to standard error, which the anchor has opened for it."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Redacting("%(asctime)s keeper[%(process)d] %(message)s"))
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.WARNING)
