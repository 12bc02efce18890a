"""The options that `perdure serve` and `perdure up` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

_OPTIONS = (
    click.option("--host", metavar="ADDRESS", help="The address to listen on (default: 127.0.0.1)."),
    click.option(
        "--port", type=click.IntRange(0, 65535), metavar="N", help="The port to listen on (default: 7420; 0: any)."
    ),
    click.option(
        "--socket", "unix", type=click.Path(), metavar="PATH", help="Listen on a Unix socket too, for this user alone."
    ),
    click.option(
        "--origin", "origins", multiple=True, metavar="URL",
        help="Where browsers reach the server through a proxy: https://perdure.example; repeatable.",
    ),
    click.option(
        "--trust-proxy", "proxies", multiple=True, metavar="CIDR",
        help="Believe X-Forwarded-For of this network; repeatable.",
    ),
    click.option(
        "--insecure-http", is_flag=True, help="Serve other machines without TLS; keys cross the network in the clear."
    ),
    click.option("--dashboard/--no-dashboard", default=True, help="Serve the dashboard too (default: yes)."),
    click.option("--open/--no-open", "opens", default=False, help="Open the link in a browser (default: no)."),
    click.option("--read-only", is_flag=True, help="Refuse every request that would change something."),
    click.option("--new-secret", is_flag=True, help="End all sessions and links that were made before."),
    click.option(
        "--access-log/--no-access-log", "logs", default=None,
        help="Log each request to stderr as JSON (default: if stderr is not a terminal).",
    ),
)  # fmt: skip


def server_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
