"""Create a task that must not exist yet."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from perdure._model import POLICIES, FirstStatus
from perdure.cli.base import Invocation, Verb, id_argument, json_option, length, pairs_option
from perdure.cli.output import words


@click.command(cls=Verb)
@id_argument()
@json_option("--state", default="{}", help="The state it begins with; {} by default.")
@click.option(
    "--status", type=click.Choice(("pending", "running")), default="running", help="How it begins; running by default."
)
@click.option("--name", default="", help="A title for people.")
@click.option("--description", default="", help="What it is about.")
@click.option("--agent", default="", help="The agent it belongs to.")
@pairs_option("--tag", "tags", help="A tag; may be repeated.")
@click.option("--depends-on", metavar="ID", multiple=True, help="A task that has to complete first; may be repeated.")
@click.option(
    "--dependency-policy", type=click.Choice(POLICIES), help="When one of those fails: wait for it, fail too, skip."
)
@click.option("--max-retries", type=int, help="Further attempts after one that ended in an error.")
@click.option("--timeout", type=length, metavar="2h", help="How long the task may take.")
@click.option("--on-failure", type=click.Choice(("retry", "pause", "fail")), help="What an error leads to.")
@click.option("--checkpoint-interval", type=length, metavar="5m", help="Checkpoint by itself so often.")
@click.option("--keep-last", type=int, metavar="N", help="Have gc keep the last N checkpoints.")
@click.option("--keep-for", type=length, metavar="7d", help="Have gc keep checkpoints for so long.")
@click.pass_obj
async def command(
    call: Invocation,
    /,
    id: str,
    state: Any,
    status: FirstStatus,
    name: str,
    description: str,
    agent: str,
    tags: tuple[tuple[str, str], ...],
    depends_on: tuple[str, ...],
    **config: int | str | timedelta | None,
) -> None:
    """Create a task that must not exist yet (exit 4 if it does); `perdure open` makes or finds one."""
    task = await call.tasks.create(
        id,
        state=state,
        status=status,
        name=name,
        description=description,
        agent=agent,
        tags=dict(tags),
        depends_on=depends_on,
        config=_config(config),
    )
    record = await task.record()
    call.answer(record, words.task_line(record))


def _config(given: dict[str, Any]) -> Any:
    """What was asked for over the defaults; None when nothing was."""
    from perdure._model import Config

    chosen = {key: value for key, value in given.items() if value is not None}
    return Config(**chosen) if chosen else None
