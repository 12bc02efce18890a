"""Create a task; fail if it exists."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from perdure._model import POLICIES, FirstStatus
from perdure.cli.base import Invocation, Verb, id_argument, json_option, length, pairs_option
from perdure.cli.output import words


@click.command(cls=Verb)
@id_argument()
@json_option("--state", default="{}", help="The first state (default: {}).")
@click.option(
    "--status",
    type=click.Choice(("pending", "running")),
    default="running",
    show_default=True,
    help="The first status.",
)
@click.option("--name", default="", metavar="TEXT", help="A title (default: none).")
@click.option("--description", default="", metavar="TEXT", help="What the task is about (default: none).")
@click.option("--agent", default="", metavar="NAME", help="The agent that the task belongs to (default: none).")
@pairs_option("--tag", "tags", help="A tag; repeatable (default: none).")
@click.option(
    "--depends-on", metavar="ID", multiple=True, help="Wait until this task has completed; repeatable (default: none)."
)
@click.option(
    "--dependency-policy",
    type=click.Choice(POLICIES),
    help="What the task does when one of those fails (default: wait).",
)
@click.option(
    "--max-retries", type=int, metavar="N", help="How many attempts may follow one that ended in an error (default: 3)."
)
@click.option("--timeout", type=length, metavar="2h", help="How long the task may take (default: no limit).")
@click.option(
    "--on-failure",
    type=click.Choice(("retry", "pause", "fail")),
    help="What perdure does after an exception (default: fail a durable function, retry another task).",
)
@click.option(
    "--checkpoint-interval", type=length, metavar="5m", help="Checkpoint automatically this often (default: never)."
)
@click.option(
    "--keep-last", type=int, metavar="N", help="Let `perdure gc` keep only the newest N checkpoints (default: all)."
)
@click.option(
    "--keep-for",
    type=length,
    metavar="7d",
    help="Let `perdure gc` remove checkpoints older than this (default: never).",
)
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
    """Create a task; fail with exit code 4 if it exists. `perdure open` creates a task or attaches to it."""
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
    """The config that the options ask for; None when they ask for the defaults."""
    from perdure._model import Config

    chosen = {key: value for key, value in given.items() if value is not None}
    return Config(**chosen) if chosen else None
