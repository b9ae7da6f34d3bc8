"""Checks that an answer is complete."""

from __future__ import annotations

from typing import TypeVar

from .errors import AssayError
from .models import DecideResponse, ExtractResponse, RunTasksResponse

Response = TypeVar("Response", RunTasksResponse, DecideResponse, ExtractResponse)

_WHY = {
    "length": "The output limit was reached: raise max_output_tokens and send the request again.",
    "content_filter": "The answer was filtered: sending the same input again does not help.",
}


class IncompleteError(AssayError):
    """Raised for an answer that was cut. `response` has the part that was generated; `finish_reason` is `length` or `content_filter`."""

    def __init__(self, response: RunTasksResponse | DecideResponse | ExtractResponse) -> None:
        self.response = response
        self.finish_reason = response.choices[0].finish_reason
        super().__init__(f"{_WHY[self.finish_reason]} (request {response.id})")


def ensure_complete(response: Response) -> Response:
    """Returns the response; raises `IncompleteError` if its `finish_reason` says that the answer was cut."""
    if response.choices and response.choices[0].finish_reason in _WHY:
        raise IncompleteError(response)
    return response
