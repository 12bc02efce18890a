"""A provider's error that was stored as data is the same error again, with its category."""

from __future__ import annotations

import json

import pytest
from pydantic_ai import ModelHTTPError, exceptions

from perdure.integrations.pydantic_ai import model_errors

CATEGORIES = [exceptions.ModelRateLimitError, exceptions.ModelOverloadedError, exceptions.ModelNotFoundError, None]


@pytest.mark.parametrize("category", CATEGORIES)
def test_an_error_comes_back_with_its_category_status_and_wait(category: type[Exception] | None) -> None:
    told = {"status_code": 429, "model_name": "m", "body": {"x": 1}, "headers": {"Retry-After": "7"}}
    error = ModelHTTPError.for_category(category, **told)  # type: ignore[arg-type]
    again = model_errors.from_data(json.loads(json.dumps(model_errors.as_data(error))))
    assert type(again) is type(error) and str(again) == str(error)
    assert (again.status_code, again.retry_after, again.body) == (429, 7.0, {"x": 1})
    assert model_errors.is_rate_limit(model_errors.as_data(error)) == isinstance(error, exceptions.ModelRateLimitError)
