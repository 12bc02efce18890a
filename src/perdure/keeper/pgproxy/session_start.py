"""A new session: a fresh one, or one that is built anew from the recipe of a lost one; and where recipes are kept."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perdure.keeper.pgproxy.login import Upstream
from perdure.keeper.pgproxy.login import upstream as login
from perdure.keeper.pgproxy.loop import Proxy
from perdure.keeper.pgproxy.protocol import wire
from perdure.keeper.pgproxy.recovery import Differs, Finding, Notebook, Parking, Server, rebuild, server_of, to_json
from perdure.keeper.pgproxy.session import Blocks, RecordingSession, Session, SessionRecipe
from perdure.keeper.session import COMMITTED, Ledger


@dataclass
class Made:
    upstream: Upstream
    session: Session
    timeouts: tuple[float, float]
    server: Server
    how: str  # new or rebuilt
    refused: str = ""  # why the transaction was not built anew
    applied: int = 0  # statements of it


def make(options: dict[str, str], recipe: SessionRecipe | None) -> Made:
    """A session, logged in; without a recipe a plain one.

    Raises:
        LoginFailed: the server refuses us, stays away, or says what no server says.
    """
    try:
        return _make(options, recipe)
    except (wire.Broken, OSError) as problem:
        raise login.LoginFailed(f"the server cannot be understood: {problem}", "protocol") from None


def _make(options: dict[str, str], recipe: SessionRecipe | None) -> Made:
    if recipe is None or not (recipe.shaping or recipe.open or recipe.spoiled):
        return _plain(options, recipe)
    try:
        return _built(options, recipe)
    except (Differs, OSError) as problem:
        why = str(problem)
    only_shaping = SessionRecipe()
    only_shaping.shaping = recipe.shaping
    try:
        made = _built(options, only_shaping)
    except (Differs, OSError) as problem:
        made = _plain(options, SessionRecipe())
        why = f"{why}; {problem}"
    made.how, made.refused = "new", why
    return made


def _plain(options: dict[str, str], recipe: SessionRecipe | None) -> Made:
    upstream = login.log_in(options)
    session = (
        Session(b"I", upstream.parameters) if recipe is None else RecordingSession(b"I", upstream.parameters, recipe)
    )
    return Made(upstream, session, login.timeouts(upstream.socket), server_of(upstream), "new")


def _built(options: dict[str, str], recipe: SessionRecipe) -> Made:
    upstream = login.log_in(options)
    timeouts, server = login.timeouts(upstream.socket), server_of(upstream)
    upstream.socket.settimeout(None)
    try:
        status = rebuild(upstream.socket, recipe, upstream.parameters)
    except (Differs, OSError, wire.Broken):
        upstream.socket.close()  # the server rolls back
        raise
    session = RecordingSession(status, upstream.parameters, recipe)
    if status != b"I" and recipe.blocks:
        session.blocks = Blocks.of(recipe.blocks)
    return Made(upstream, session, timeouts, server, "rebuilt", applied=len(recipe.open))


# ── where recipes are kept ───────────────────────────────────────────────────────────────────────


# Beside the session's sockets: it outlives the proxy and the anchor, and is removed with the session.
RECIPE = "recipe"


def kept_recipe(config: Mapping[str, Any], parking: Parking) -> tuple[SessionRecipe | None, Notebook | None]:
    """The recipe of the previous session, and the page for the new one; none unless requested."""
    if config.get("rebuild", "never") == "never":
        return None, None
    name = f"{config['name']}.recipe"
    parked = parking.take(name)
    page = Notebook(parked[0]) if parked is not None else Notebook.in_file(f"{config['folder']}/{RECIPE}")
    if parked is None:
        parking.put(name, page.fd)
    given = config.get("recipe")
    facts = json.loads(base64.b64decode(given)) if given else page.read()
    return SessionRecipe.of(facts) if facts else SessionRecipe(), page


LEDGER = "ledger"


def kept_ledger(config: Mapping[str, Any], parking: Parking) -> Ledger:
    """The calls done in this session, by any process."""
    name = f"{config['name']}.{LEDGER}"
    parked = parking.take(name)
    path = f"{config['folder']}/{LEDGER}"
    return Ledger(path, parked[0] if parked is not None else -1, lambda file: parking.put(name, file))


def take_over(ledger: Ledger, made: Made, finding: Finding | None) -> None:
    """The ledger of the session before, for one that is new: of its open transaction is true what was built anew, or
    what the server says of its COMMIT."""
    if finding is not None:
        _settle(ledger, finding)
    is_open = made.session.status != b"I"
    if is_open and isinstance(made.session, RecordingSession):
        ledger.keep_only({entry.path for entry in made.session.recipe.open})
    else:
        ledger.connection_lost()
    made.session.ledger = ledger
    made.session.has_committed = finding is not None and finding.transaction == COMMITTED


def _settle(ledger: Ledger, finding: Finding) -> None:
    state = finding.outcome.state if finding.outcome is not None else ""
    if ledger.pending is not None and not ledger.pending.block:  # a transaction by itself
        if state == "done":
            ledger.done(None, is_open=False)
        elif state == "undone":
            ledger.never_ran()
    if finding.transaction == COMMITTED and finding.outcome is not None:  # else it had been answered
        ledger.ended(is_committed=True)


def as_text(recipe: SessionRecipe | None) -> str:
    """A recipe on its way to another process."""
    return base64.b64encode(to_json(recipe.facts())).decode() if recipe is not None else ""


def keep_recipe(proxy: Proxy, page: Notebook | None) -> None:
    """Write the recipe down whenever nothing is under way: in memory that outlives the proxy."""
    session = proxy.session
    if page is None or not isinstance(session, RecordingSession):
        return

    def write(rests: int = 0) -> None:
        session.recipe.rests = rests
        if not page.write(to_json(session.recipe.facts())):
            session.recipe.spoil("its statements are too large to be kept for that")
            page.write(to_json(session.recipe.facts()))

    proxy.on_rest = lambda: write(proxy.witness.rests + 1)
    write()
