"""`app.schedules`, `app.triggers`, `app.events` and `app.kill_switch` of a server elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from perdure._durable import Events, IncomingEvent, KillSwitch, Received, Schedule, Schedules, Switch, Triggers
from perdure._ground.durations import Duration, require_timedelta
from perdure._ground.ids import check_id
from perdure._model import Missed, Trigger
from perdure.client.list_pages import some
from perdure.client.requests import keyed
from perdure.client.transport import Transport
from perdure.errors import AlreadyExists, InvalidInput, KillSwitchOn, NotFound, StaleVersion

Json = Any


class RemoteSchedules(Schedules):
    """The schedules of one namespace behind a server."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def list(self) -> Sequence[Schedule]:
        return [_schedule(item) for item in (await self._transport.get("/v1/schedules")).value["items"]]

    async def get(self, id: str) -> Schedule | None:
        try:
            return _schedule((await self._transport.get(_at("schedules", id))).value)
        except NotFound:
            return None

    async def pause(self, id: str) -> Schedule:
        return _schedule((await self._transport.send("POST", f"{_at('schedules', id)}/pause")).value)

    async def resume(self, id: str) -> Schedule:
        return _schedule((await self._transport.send("POST", f"{_at('schedules', id)}/resume")).value)

    async def remove(self, id: str, *, if_version: int | None = None) -> None:
        await _remove(self._transport, _at("schedules", id), if_version)

    async def add(
        self,
        id: str,
        function: str,
        arguments: Mapping[str, Any] = {},
        *,
        version: int | None = None,
        cron: str = "",
        tz: str = "UTC",
        every: Duration | None = None,
        missed: Missed = "once",
        overlap: bool = False,
        queue: str = "default",
        priority: int = 0,
        if_version: int | None = None,
    ) -> Schedule:
        length = require_timedelta("every", every)
        body = {
            "function": function,
            "version": version,
            "arguments": dict(arguments),
            "cron": cron,
            "tz": tz,
            "every": None if length is None else length.total_seconds(),
            "missed": missed,
            "overlap": overlap,
            "queue": queue,
            "priority": priority,
        }
        return _schedule(await _put(self._transport, "schedules", id, body, if_version))

    async def run_now(self, id: str, *, key: str | None = None) -> str:
        reply = await self._transport.send(
            "POST", f"{_at('schedules', id)}/run", headers=keyed(key, _at("schedules", id))
        )
        return str(reply.value["id"])


class RemoteTriggers(Triggers):
    """The triggers of one namespace behind a server."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def start(self, id: str, fn: Any, /, *args: Any) -> Any:
        raise InvalidInput("through a server a trigger is made by a function's name", do="use app.triggers.add(…)")

    def signal(self, id: str, task: str, name: str) -> Any:
        raise InvalidInput(
            "through a server a trigger is made in one call", do="use app.triggers.add(…, task=, signal=)"
        )

    async def add(
        self,
        id: str,
        event: str,
        *,
        function: str | None = None,
        version: int | None = None,
        arguments: Mapping[str, Any] = {},
        takes: str | None = None,
        queue: str = "default",
        priority: int = 0,
        task: str | None = None,
        signal: str | None = None,
        rate: tuple[int, Duration] | None = None,
        schema: Mapping[str, Any] | None = None,
        if_version: int | None = None,
    ) -> Trigger:
        per = require_timedelta("the time of a rate", rate[1]) if rate is not None else None
        body = {
            "event": event,
            "function": function,
            "version": version,
            "arguments": dict(arguments),
            "takes": takes,
            "queue": queue,
            "priority": priority,
            "task": task,
            "signal": signal,
            "rate": None if rate is None or per is None else {"most": rate[0], "per": per.total_seconds()},
            "schema": None if schema is None else dict(schema),
        }
        return _trigger(await _put(self._transport, "triggers", id, body, if_version))

    async def get(self, id: str) -> Trigger | None:
        try:
            return _trigger((await self._transport.get(_at("triggers", id))).value)
        except NotFound:
            return None

    async def list(self) -> Mapping[str, Trigger]:
        return {item["id"]: _trigger(item) for item in (await self._transport.get("/v1/triggers")).value["items"]}

    async def pause(self, id: str) -> None:
        await self._transport.send("POST", f"{_at('triggers', id)}/pause")

    async def resume(self, id: str) -> None:
        await self._transport.send("POST", f"{_at('triggers', id)}/resume")

    async def remove(self, id: str, *, if_version: int | None = None) -> None:
        await _remove(self._transport, _at("triggers", id), if_version)


class RemoteEvents(Events):
    """Where events come in, behind a server."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def send(self, name: str, data: Any = None, *, id: str | None = None) -> Received:
        reply = await self._transport.send("POST", _at("events", name), {"id": id, "data": data})
        return msgspec.convert(reply.value, Received)

    async def list(self, *, limit: int = 1000, after: str = "") -> Sequence[IncomingEvent]:
        if after:
            raise InvalidInput("a server lists events from their beginning", do="leave out after=")
        found, _ = await some(self._transport, "/v1/events", limit, {})
        return [msgspec.convert(item, IncomingEvent, strict=False) for item in found]


class RemoteKillSwitch(KillSwitch):
    """The kill switches of one namespace behind a server."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def on(self, id: str | None = None, *, why: str = "") -> None:
        await self._transport.send("PUT", _switch(id), {"why": why})

    async def off(self, id: str | None = None) -> None:
        await self._transport.send("DELETE", _switch(id))

    async def list(self) -> Sequence[Switch]:
        return [msgspec.convert(item, Switch) for item in (await self._transport.get("/v1/switches")).value["items"]]

    async def check(self, id: str) -> None:
        for switch in await self.list():
            if switch.id in (None, id):
                raise KillSwitchOn(id, switch.why, str(switch.by.get("user", "?")))


def _switch(id: str | None) -> str:
    return "/v1/switch" if id is None else _at("switches", id)


def _at(noun: str, id: str) -> str:
    escaped = quote(check_id(id), safe="")
    return f"/v1/{noun}/{escaped.replace('.', '%2E') if set(id) <= {'.'} else escaped}"


async def _put(transport: Transport, noun: str, id: str, body: dict[str, Any], if_version: int | None) -> Any:
    """Make it, or change the one that is there, as the library does: under this version, or whichever it has."""
    while True:
        if not if_version:
            try:
                return (await transport.send("POST", f"/v1/{noun}", {"id": id, **body})).value
            except AlreadyExists:
                if if_version == 0:
                    raise StaleVersion(id, 0, _version((await transport.get(_at(noun, id))).value)) from None
        version = if_version or _version((await transport.get(_at(noun, id))).value)
        try:
            match = {"If-Match": f'"v{version}"'}
            return (await transport.send("PUT", _at(noun, id), body, headers=match)).value
        except (StaleVersion, NotFound):
            if if_version is not None:
                raise


async def _remove(transport: Transport, path: str, if_version: int | None) -> None:
    while True:
        version = if_version if if_version is not None else _version((await transport.get(path)).value)
        try:
            await transport.send("DELETE", path, headers={"If-Match": f'"v{version}"'})
            return
        except StaleVersion:
            if if_version is not None:
                raise


def _version(value: Mapping[str, Any]) -> int:
    return int(str(value["etag"]).removeprefix("v"))


def _schedule(value: Mapping[str, Any]) -> Schedule:
    return msgspec.convert({"state": None, **value, "version": _version(value)}, Schedule, strict=False)


def _trigger(value: Mapping[str, Any]) -> Trigger:
    rate = value.get("rate") or {}
    limit = {"most": rate.get("most", 0), "per_ms": int(rate.get("per", 0) * 1000)}
    return msgspec.convert({**value, **limit}, Trigger, strict=False)
