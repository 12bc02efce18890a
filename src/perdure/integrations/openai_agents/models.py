"""Model calls as steps: a response, or the events of a streamed one, are stored and handed out again in a replay."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from agents import Model, ModelProvider, Usage
from agents.items import ModelResponse, TResponseOutputItem, TResponseStreamEvent
from pydantic import TypeAdapter

import perdure

_items: TypeAdapter[list[TResponseOutputItem]] = TypeAdapter(list[TResponseOutputItem])
_events: TypeAdapter[list[TResponseStreamEvent]] = TypeAdapter(list[TResponseStreamEvent])
_usage: TypeAdapter[Usage] = TypeAdapter(Usage)
_NAME = "openai_agents.model"


class DurableModel(Model):
    """A model whose calls are recorded. Outside of a durable function they just happen."""

    def __init__(self, inner: Model) -> None:
        self.inner = inner

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        async def ask() -> dict[str, Any]:
            return _as_data(await self.inner.get_response(*args, **kwargs))

        return _from_data(await perdure.call(ask, name=_NAME, flush=True))

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        """Events come live the first time, and at once in a replay. A stream that was cut off is asked again whole."""
        live: asyncio.Queue[TResponseStreamEvent | None] = asyncio.Queue()

        async def ask() -> list[Any]:
            seen = []
            async for event in self.inner.stream_response(*args, **kwargs):
                seen.append(event)
                live.put_nowait(event)
            data: list[Any] = _events.dump_python(seen, mode="json", exclude_unset=True)
            return data

        call = asyncio.ensure_future(perdure.call(ask, name=f"{_NAME}.stream", flush=True))
        call.add_done_callback(lambda _: live.put_nowait(None))
        handed = 0
        try:
            while (event := await live.get()) is not None:
                handed += 1
                yield event
            for event in _events.validate_python(await call)[handed:]:
                yield event
        finally:
            call.cancel()

    async def close(self) -> None:
        await self.inner.close()


class DurableProvider(ModelProvider):
    """A provider whose models are recorded."""

    def __init__(self, inner: ModelProvider) -> None:
        self.inner = inner

    def get_model(self, model_name: str | None) -> Model:
        return recorded_model(self.inner.get_model(model_name))


def recorded_model(model: Model) -> Model:
    return model if isinstance(model, DurableModel) else DurableModel(model)


def _as_data(response: ModelResponse) -> dict[str, Any]:
    return {
        "output": _items.dump_python(response.output, mode="json", exclude_unset=True),
        "usage": _usage.dump_python(response.usage, mode="json"),
        "response_id": response.response_id,
        "request_id": response.request_id,
        "raw_usage": response.raw_usage,
    }


def _from_data(data: dict[str, Any]) -> ModelResponse:
    return ModelResponse(
        output=_items.validate_python(data["output"]),
        usage=_usage.validate_python(data["usage"]),
        response_id=data["response_id"],
        request_id=data["request_id"],
        raw_usage=data["raw_usage"],
    )
