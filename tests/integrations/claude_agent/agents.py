"""A Claude agent that the crash tests kill: looks, pays, and refunds after an approval. Real CLI, fake model."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, tool
from claude_agent_sdk.types import ResultMessage

from perdure import Perdure, durable
from perdure.integrations.claude_agent import DurableClaude, cli_life, runner
from perdure.integrations.claude_agent.cli_life import CliLife
from tests.integrations.claude_agent.fake_api import fake_api
from tests.integrations.crash_kit import Fate, Ledger
from tests.support.processes import Link

_now: dict[str, Any] = {}


def _happens(deed: str) -> None:
    _now["ledger"].note(deed)
    _now["fate"].passes(deed)


def _says(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


@tool("look", "Look at a thing", {"x": int})
async def look(args: dict[str, Any]) -> dict[str, Any]:
    _happens("look")
    return _says(f"seen {args['x']}")


@tool("pay", "Pay", {"cents": int})
async def pay(args: dict[str, Any]) -> dict[str, Any]:
    _happens("pay")
    if _now["breaks"]:
        raise TimeoutError("no answer from the bank")
    return _says("paid")


@tool("refund", "Give money back", {"cents": int})
async def refund(args: dict[str, Any]) -> dict[str, Any]:
    _happens("refund")
    return _says("refunded")


class _Fated(CliLife):
    async def _until_stored(self, call_id: str) -> None:
        """What the SDK mirrors is not stored before a call is about to begin."""
        if _now["mirror"] == "slow":
            _now["may_store"].set()
        await super()._until_stored(call_id)

    def tell(self, call_id: str, told: dict[str, Any]) -> None:
        """Between the outcome in the journal and the CLI that hears of it."""
        _now["fate"].passes("outcome")
        super().tell(call_id, told)

    async def _begin(self, program: str) -> Any:
        """A new CLI, which has not heard of an outcome that is on disk."""
        begun = await super()._begin(program)
        while any(one.state == "uncertain" for one in await _now["app"].effects.of("clerk-1")):
            await asyncio.sleep(0)
        if any(one["call"]["tool"].endswith("pay") for kept in self._unheard.values() for one in kept):
            _now["fate"].passes("pay unheard")
        return begun


class _SlowMirror(cli_life._OneProject):
    async def append(self, key: Any, entries: Any) -> None:
        await _now["may_store"].wait()
        await super().append(key, entries)


@durable
async def clerk(question: str) -> str:
    result: ResultMessage = await _now["claude"].run(question)
    return result.result or ""


async def clerk_life(
    link: Link, url: str, path: Path, point: str, home: str, answers: Sequence[str] = (), how: Any = None
) -> Any:
    """Answers what the task asks with `answers`, in order; returns what is asked when there are none left.

    `home` is the home folder of this life, and the working folder lies in it. `limit` reaches the usage limit once.
    `mirror` is "slow" (the SDK's transcript comes when a call is about to begin) or "lost" (it never comes).
    """
    runner.CliLife = _Fated  # type: ignore[attr-defined]
    how, ledger = how or {}, Ledger(path)
    _now.update(ledger=ledger, fate=Fate(point), breaks=how.get("breaks", False))
    _now.update(mirror=how.get("mirror"), may_store=asyncio.Event())
    if "mirror" in how:
        cli_life._OneProject = _SlowMirror  # type: ignore[misc]
    Path(home, "work").mkdir(parents=True, exist_ok=True)

    def asked(wanted: str) -> int | None:
        _happens(f"model {wanted}")
        if "limit" in how and wanted == "pay" and ledger.counts()["model pay"] == 1:
            return int(time.time() + how["limit"])
        return None

    async def after_tool(given: Any, _: str | None, __: Any) -> Any:
        _now["fate"].passes(f"told {given['tool_name'].rpartition('__')[2]}")
        return {}

    with fake_api(asked) as address:
        env = {
            "HOME": home,
            "ANTHROPIC_BASE_URL": address,
            "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        os.environ.update(HOME=home)
        for name in ("ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR"):
            os.environ.pop(name, None)
        options = ClaudeAgentOptions(
            env=env,
            cwd=f"{home}/work",
            setting_sources=[],
            tools=[],
            model="claude-sonnet-4-5",
            hooks={"PostToolUse": [HookMatcher(hooks=[after_tool])]},
        )
        async with Perdure(url) as app:
            _now["app"] = app
            _now["claude"] = DurableClaude(
                app,
                options,
                tools={"shop": [look, pay, refund]},
                how={"look": {"kind": "step", "flush": True}},
                approve=["mcp__shop__refund"],
                limits=how.get("limits", True),
            )
            left = list(answers)
            while not (stopped := await app.run_until_paused("clerk-1", clerk, "hello")).is_finished:
                if stopped.pause is not None and stopped.pause.reason == "rate_limit":
                    if how.get("stops_at_limit"):
                        return stopped.pause.reason, stopped.pause.due_at is not None
                    continue
                _now["fate"].passes("asked")
                (question,) = (await app.inbox.page()).items
                if not left:
                    return question.kind
                if question.kind == "approval":
                    await (app.inbox.approve if left.pop(0) == "approve" else app.inbox.reject)(question.id)
                else:
                    choice, _, value = left.pop(0).partition(":")
                    await app.inbox.settle(question.id, choice, value=value or None)  # type: ignore[arg-type]
            return stopped.result
