"""Change one line that carries a promise, and see a named test fail; a seed is a number in the list.

    python -m tests.torture --part promises

Each mutant is a line of the source and a weaker line. The package is copied, the line is replaced in the copy, and the
tests that are named for the promise run against the copy. If they pass, nothing guards the line: that fails the part.
What failed must pass with the line as it is: a test that fails anyway, or is too slow on a busy machine, shows nothing.
A line that is no longer in the source fails a test of `make test`, so the list stays true.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "perdure"
TEST_LIMIT = 300.0  # seconds; a test that hangs has noticed too
FAILED = 1  # pytest's code for "some test failed"
NOT_NOTICED = {0, 2, 3, 4, 5}  # all passed; interrupted, broken, called wrongly, no test found


_STACKS = "(most recent call first)"  # printed of a test that hangs, before its process is ended


class Unnoticed(Exception):
    """A promise is broken, and the tests named for it pass."""


class Promise(NamedTuple):
    """A line of the source, the line that breaks its promise, and the tests that notice."""

    says: str
    file: str
    line: str
    broken: str
    tests: tuple[str, ...]

    @property
    def path(self) -> Path:
        return SOURCE / self.file


def run(seed: int, known: Mapping[str, Promise] | None = None) -> None:
    known = PROMISES if known is None else known
    name = list(known)[seed]
    told = broken_run(known[name])
    print(f"promise {name!r} is guarded: {told}", flush=True)


def broken_run(promise: Promise) -> str:
    """Run the tests of a promise against a copy in which it is broken; what the first failure says.

    Raises:
        Unnoticed: they pass, or could not be run, or fail with the whole source too.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "perdure"
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        file = copy / promise.file
        file.write_text(broken_text(promise), encoding="utf-8")
        code, told = _pytest(promise.tests, folder)
    if code in NOT_NOTICED:
        raise Unnoticed(f"{promise.says!r} is broken in {promise.file}, and pytest ends with {code}:\n{told[-2000:]}")
    hangs = code != FAILED or _STACKS in told
    failed = promise.tests if hangs else (_first_failure(told),)
    code, told = _pytest(failed, str(SOURCE.parent))
    if code != 0:
        raise Unnoticed(f"{promise.says!r}: {' '.join(failed)} fails without a change as well:\n{told[-2000:]}")
    return f"{' '.join(failed)} {'hangs, and is ended' if hangs else 'fails'}"


def broken_text(promise: Promise) -> str:
    """The file with its promise broken."""
    text = promise.path.read_text(encoding="utf-8")
    if text.count(promise.line) != 1:
        raise LookupError(f"{promise.file} has {text.count(promise.line)} times, not once: {promise.line!r}")
    return text.replace(promise.line, promise.broken)


def _pytest(tests: tuple[str, ...], source: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *tests]
    environ = {**os.environ, "PYTHONPATH": source}
    with tempfile.TemporaryFile() as output:
        running = subprocess.Popen(
            command, cwd=ROOT, env=environ, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            code = running.wait(timeout=TEST_LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, 9)
            code = running.wait()
        output.seek(0)
        return code, output.read().decode("utf-8", "replace")


def _first_failure(told: str) -> str:
    found = re.search(r"^(?:FAILED|ERROR) (\S+?(?:\[.*\])?)(?: - .*)?$", told, re.MULTILINE)
    if found is None or "collecting" in told.partition(found[0])[0][-200:]:
        raise Unnoticed(f"no test has failed:\n{told[-2000:]}")
    return found[1]


_COMMITTER = "_store/committer.py"
_FENCING = "tests/store/test_fencing.py"

# ── the promises ─────────────────────────────────────────────────────────────────────────────────

PROMISES = {
    "fence of entries, SQLite": Promise(
        "an old epoch writes no entry",
        "_store/sqlite/statements/append_entries.sql",
        "epoch = :epoch",
        "epoch >= :epoch",
        (_FENCING,),
    ),
    "fence of checkpoints, SQLite": Promise(
        "an old epoch writes no checkpoint",
        "_store/sqlite/queries/checkpoint.sql",
        "task_uid = :uid AND epoch = :epoch",
        "task_uid = :uid AND epoch >= :epoch",
        (_FENCING,),
    ),
    "fence of entries, PostgreSQL": Promise(
        "an entry waits for a claim that is under way, and sees its epoch",
        "_store/postgres/statements/_append.sql",
        "    FOR SHARE\n",
        "\n",
        ("tests/store/test_postgres_fencing.py",),
    ),
    "claim": Promise(
        "a claim raises the epoch",
        "_store/sqlite/queries/claim.sql",
        "SET epoch = epoch + 1",
        "SET epoch = epoch",
        (_FENCING, "tests/store/test_leases.py"),
    ),
    "sync": Promise(
        "a call that returned is on disk",
        "_store/sqlite/engine.py",
        'synchronous: str = "FULL"',
        'synchronous: str = "NORMAL"',
        ("tests/crash/test_power_loss.py",),
    ),
    "state writes": Promise(
        "a state write names the state that it read",
        "_store/sqlite/queries/checkpoint.sql",
        "AND state_seq = :parent",
        "",
        ("tests/tasks/test_state_writes.py", "tests/store/test_checkpoints.py"),
    ),
    "first answer": Promise(
        "the first answer to a question stands",
        "_store/sqlite/queries/answer_pause.sql",
        "AND answer IS NULL",
        "",
        ("tests/store/test_questions.py", "tests/tasks/test_inbox.py"),
    ),
    "order of the queue": Promise(
        "writes that the engine did not take go back in their order",
        _COMMITTER,
        "extendleft(reversed(rest))",
        "extendleft(rest)",
        ("tests/store/test_committer.py", "tests/store/test_committer_failures.py"),
    ),
    "closed attempts": Promise(
        "after a failed write nothing more of its attempt is written",
        _COMMITTER,
        "if write.fence is None or write.fence.closed is None:",
        "if True:",
        ("tests/store/test_committer_failures.py",),
    ),
    "batch number": Promise(
        "after a lost COMMIT the number of the batch says whether it is in",
        "_store/postgres/writer.py",
        "return sent.read(note) if newest == self._number else None",
        "return None",
        ("tests/store/test_postgres_doubt.py",),
    ),
    "intent": Promise(
        "the intent of an effect is on disk before its body runs",
        "_durable/effects/effect_walk.py",
        "                    await write\n",
        "                    pass\n",
        ("tests/durable/test_effects.py",),
    ),
    "uncertain": Promise(
        "an effect with an intent and no outcome is settled, and not run again",
        "_replay/cursor.py",
        "        return Uncertain(path, *intent)",
        "        return Fresh(path)",
        ("tests/replay/test_cursor.py", "tests/durable/test_effects.py"),
    ),
    "other arguments": Promise(
        "a recorded call with other arguments diverges",
        "_replay/cursor.py",
        "name, digest)\n        return found",
        "name, digest) and found\n        return found",
        ("tests/replay/test_cursor.py", "tests/replay/test_divergence.py"),
    ),
    "recorded calls in another order": Promise(
        "recorded calls in another order diverge",
        "_replay/cursor.py",
        "if found.position < self._furthest:",
        "if False:",
        ("tests/replay/test_divergence.py",),
    ),
    "checksum": Promise(
        "a changed record is noticed",
        "_ground/secrets/envelope.py",
        "        if not is_whole(data, place):",
        "        if False:",
        ("tests/unit/test_envelope.py",),
    ),
    "binding": Promise(
        "a sealed record opens only in its own place",
        "_ground/secrets/envelope.py",
        "return head + crypto.encrypt(key, body, head + bound_to.encode())",
        "return head + crypto.encrypt(key, body, head)",
        ("tests/unit/test_envelope.py", "tests/tasks/test_rotation.py"),
    ),
    "silence": Promise(
        "a worker is lost only after a whole lease of silence",
        "_worker/losses/reaper.py",
        "return SILENT if sighting.is_over(listened, lease) else None",
        "return SILENT",
        ("tests/worker/test_silence.py", "tests/worker/test_reaper.py", "tests/crash/test_leases.py"),
    ),
    "gc": Promise(
        "gc keeps a task that an open question waits for",
        "_tasks/upkeep/gc.py",
        "        if waits_for is not None:\n            yield waits_for",
        "        if False:\n            yield waits_for",
        ("tests/tasks/test_gc.py", "tests/tasks/test_gc_beside.py", "tests/durable/test_gc_model.py"),
    ),
    "API keys": Promise(
        "a key counts only with its secret",
        "server/credentials/api_keys.py",
        "is_present = hmac.compare_digest(given, key.hash if key else _NO_HASH)",
        "is_present = True",
        ("tests/server/test_credentials.py",),
    ),
    "revoked keys": Promise(
        "a revoked or expired key is refused",
        "server/credentials/api_keys.py",
        "if key is None or not key.is_good(now):",
        "if key is None:",
        ("tests/server/test_credentials.py",),
    ),
    "scopes": Promise(
        "a key does what its scopes allow and nothing else",
        "server/pipeline.py",
        "missing = [scope for scope in route.scopes if scope not in caller.scopes]",
        "missing: list[str] = []",
        ("tests/server/test_credentials.py", "tests/server/security/test_auth_matrix.py"),
    ),
    "foreign hosts": Promise(
        "a request with a foreign Host is refused",
        "server/access/guard_rules.py",
        "if own is None and not is_peer:",
        "if False:",
        ("tests/server/test_guard.py",),
    ),
    "foreign pages": Promise(
        "a page of another origin changes nothing",
        "server/access/guard_rules.py",
        "if origin is not None and origin.lower() != own:",
        "if False:",
        ("tests/server/test_guard.py",),
    ),
    "order of delivery": Promise(
        "recorded results reach the code in the order of their positions",
        "_durable/attempt/delivery_order.py",
        "        if position in self.loose:",
        "        if True:",
        ("tests/replay/test_order.py",),
    ),
    "handlers of events": Promise(
        "a handler that failed gets the same event again before the next one",
        "_worker/delivery/deliveries.py",
        "                break\n            reached",
        "                pass\n            reached",
        ("tests/coordination/test_handlers.py",),
    ),
    "messages of webhooks": Promise(
        "of two processes that sent one message, one records the try",
        "_store/sqlite/queries/record_delivery.sql",
        " AND tries = :tries",
        "",
        ("tests/store/test_webhooks.py",),
    ),
    "rotated keys": Promise(
        "the secret before a rotation ends with the overlap",
        "server/credentials/api_keys.py",
        "key.former_until is not None and now < key.former_until",
        "key.former_until is not None",
        ("tests/server/test_credentials.py",),
    ),
    "namespaces": Promise(
        "a key of one namespace does not reach the keys of another",
        "server/credentials/api_keys.py",
        "if kept is None or namespace not in (None, kept.value.namespace):",
        "if kept is None:",
        ("tests/server/test_credentials.py",),
    ),
    "unsigned bundles": Promise(
        "an unsigned bundle is data only",
        "_runtime/bundles/bundle_file.py",
        "self.is_trusted = trust or self.header.is_signed",
        "self.is_trusted = True",
        ("tests/security/test_hostile_bundles.py",),
    ),
    "statements and the journal": Promise(
        "a statement goes out only when the journal has what it may depend on",
        "_runtime/sessions/statements.py",
        "    await (attempt.pipeline.flush_outside() if block else attempt.flush())",
        "    await (attempt.pipeline.flush_outside() if block else attempt.pipeline.check_holder())",
        ("tests/sessions/test_once.py",),
    ),
    "shells of untrusted bundles": Promise(
        "what a bundle says of a shell is used only if a trusted key has signed it",
        "_runtime/restore/restore_plan.py",
        '    if came is None or not came.get("trusted", came.get("signed", False)):',
        "    if came is None:",
        ("tests/runtime/test_other_keepers.py",),
    ),
    "input of a former shell": Promise(
        "input that was cut off with a former shell is asked about",
        "_runtime/units/shell.py",
        'is_blind = "elsewhere" in self.record.facts or "instead_of" in self.record.facts',
        "is_blind = False",
        ("tests/runtime/test_other_keepers.py",),
    ),
    "commands of a former shell": Promise(
        "a command that was cut off with a shell of another keeper is asked about",
        "_runtime/units/shell.py",
        'is_blind = "elsewhere" in self.record.facts and "rebuilt_from" not in self.record.facts',
        "is_blind = False",
        ("tests/runtime/test_other_keepers.py",),
    ),
    "statements by themselves": Promise(
        "a statement outside a transaction is not repeated when the session's memory of it is gone",
        "_runtime/sessions/lone_statements.py",
        "            if is_same and one.number >= sent.number and one.ledger != sent.ledger:",
        "            if False:",
        ("tests/sessions/test_machine_deaths.py",),
    ),
    "earlier arguments": Promise(
        "a rollback to before a carry_over is refused",
        "_durable/lifecycle/lines/task_rollback.py",
        "        await _require_first_state(store, uid, rows[0], lines[0])\n",
        "        pass\n",
        ("tests/durable/test_rolling.py", "tests/durable/test_rollback_model.py"),
    ),
    "timers of a replay": Promise(
        "a timer set in a replay does not wait for the time that the record took",
        "_durable/attempt/attempt.py",
        "when -= self.made_alarms.ahead",
        "when -= 0",
        ("tests/replay/test_timers.py",),
    ),
    "resting duties": Promise(
        "a duty that rests looks when something was written",
        "_worker/worker.py",
        "            loop.stir()\n",
        "            pass\n",
        ("tests/worker/test_idle.py",),
    ),
}
