"""Every error that this package raises is an `AssayError`."""

from __future__ import annotations

from typing import Any

import httpx


class AssayError(Exception):
    """Base of all errors of this package."""


class APIConnectionError(AssayError):
    """Raised if there is no answer: the server cannot be reached, the connection broke, or the response does not come from Assay."""


class APITimeoutError(APIConnectionError):
    """Raised if no answer came within the timeout. The request is not sent again, because the server may have done it."""


class APIStatusError(AssayError):
    """Raised for an error response of the server. Branch on `code`; the message is for logs, not for end users."""

    status: int
    """HTTP status."""
    type: str | None
    """Type of the error, such as `invalid_request_error`; None if the response comes from a proxy and not from Assay."""
    code: str | None
    """Code of the error, such as `invalid_value`; None if the response comes from a proxy and not from Assay."""
    param: str | None
    """Path of the invalid field, such as `tasks[2].options[0]`."""
    request_id: str | None
    """Identifies the request in the server's log."""
    retry_after: float | None
    """Seconds to wait before a retry, if the server stated them; else None."""

    def __init__(self, response: httpx.Response) -> None:
        details = _error_details(response)
        self.status = response.status_code
        self.type = details.get("type")
        self.code = details.get("code")
        self.param = details.get("param")
        self.request_id = response.headers.get("x-request-id")
        self.retry_after = retry_after(response)
        message = details.get("message") or response.text[:200] or response.reason_phrase
        super().__init__(f"{self.status} {self.code or ''}: {message} (request {self.request_id})")


class BadRequestError(APIStatusError):
    """Raised for status 400: the request is malformed."""


class AuthenticationError(APIStatusError):
    """Raised for status 401: the API key is missing or unknown."""


class PermissionDeniedError(APIStatusError):
    """Raised for status 403: the key may not use this model."""


class NotFoundError(APIStatusError):
    """Raised for status 404 of the model server: there is no such model."""


class ConflictError(APIStatusError):
    """Raised for status 409 of the model server: the model is not in the state that the operation needs."""


class UnprocessableEntityError(APIStatusError):
    """Raised for status 422: a value is invalid."""


class RateLimitError(APIStatusError):
    """Raised for status 429 after all retries: too many requests. Wait `retry_after` seconds."""


class ServerError(APIStatusError):
    """Raised for status 5xx after all retries: the server failed."""


_BY_STATUS: dict[int, type[APIStatusError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    422: UnprocessableEntityError,
    429: RateLimitError,
}


def status_error(response: httpx.Response) -> APIStatusError:
    """Returns the error for a response that is not a success; its body must already have been read."""
    fallback = ServerError if response.status_code >= 500 else APIStatusError
    return _BY_STATUS.get(response.status_code, fallback)(response)


def retry_after(response: httpx.Response) -> float | None:
    """Returns the seconds of the `Retry-After` header; None if there is none, or if it is not a number."""
    try:
        return max(0.0, float(response.headers["retry-after"]))
    except (KeyError, ValueError):
        return None


def _error_details(response: httpx.Response) -> dict[str, Any]:
    try:
        details = response.json()["error"]
    except (ValueError, LookupError, TypeError):
        return {}
    return details if isinstance(details, dict) else {}
