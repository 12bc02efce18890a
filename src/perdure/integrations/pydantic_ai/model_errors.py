"""A provider's HTTP error as data, so that it is the same exception when its step is replayed. Pure.

Pydantic AI raises private classes that are both `ModelHTTPError` and a public category. Code catches them by category
(fallback models, rate limits), so the category has to come back too.
"""

from __future__ import annotations

from typing import Any

from pydantic_ai import exceptions
from pydantic_core import to_jsonable_python

_CATEGORIES: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        exceptions.ModelRateLimitError,
        exceptions.ModelQuotaExceededError,
        exceptions.ModelOverloadedError,
        exceptions.ModelUnavailableError,
        exceptions.ModelServerError,
        exceptions.ModelContextWindowExceededError,
        exceptions.ModelAuthenticationError,
        exceptions.ModelNotFoundError,
        exceptions.ModelRequestRejectedError,
    )
}
# What a model request may raise besides: these have calls of their own by which they are made again.
OTHERS = (
    exceptions.UnexpectedModelBehavior,
    exceptions.ContentFilterError,
    exceptions.ModelConnectionError,
    exceptions.ModelTimeoutError,
    exceptions.ModelRequestTimeout,
    exceptions.ModelAPIError,
    exceptions.UserError,
)


def as_data(error: exceptions.ModelHTTPError) -> dict[str, Any]:
    category = next((name for name, cls in _CATEGORIES.items() if isinstance(error, cls)), None)
    return {
        "category": category,
        "status_code": error.status_code,
        "model_name": error.model_name,
        "body": to_jsonable_python(error.body, fallback=str),
        "headers": error.headers,
        "suggested_model_id": error.suggested_model_id,
        "hint": error.hint,
        "retry_after": error.retry_after,
        "in_stream": error.in_stream,
    }


def from_data(data: dict[str, Any]) -> exceptions.ModelHTTPError:
    return exceptions.ModelHTTPError.for_category(
        _CATEGORIES.get(data["category"]), **{name: value for name, value in data.items() if name != "category"}
    )


def is_rate_limit(data: dict[str, Any]) -> bool:
    return bool(data["category"] == exceptions.ModelRateLimitError.__name__)
