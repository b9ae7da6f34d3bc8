"""Every error that this package raises is an `AssayError`."""

from __future__ import annotations

from typing import Any

import httpx


class AssayError(Exception):
    """Base of all errors of this package."""


class APIConnectionError(AssayError):
    """No answer: the server cannot be reached, the connection broke, or the response does not come from Assay."""


class APITimeoutError(APIConnectionError):
    """No answer within the timeout. The request is not sent again, because the work may have been done."""


class APIStatusError(AssayError):
    """The server answered with an error. Branch on `code`; the message is for logs, not for end users."""

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
    """400: the request is malformed."""


class AuthenticationError(APIStatusError):
    """401: no API key, or an unknown one."""


class PermissionDeniedError(APIStatusError):
    """403: the key may not use this model."""


class NotFoundError(APIStatusError):
    """404 (model server): there is no such model."""


class ConflictError(APIStatusError):
    """409 (model server): the model is not in the state that the operation needs."""


class UnprocessableEntityError(APIStatusError):
    """422: a value is not valid."""


class RateLimitError(APIStatusError):
    """429: too many requests, also after the retries; wait `retry_after` seconds."""


class ServerError(APIStatusError):
    """5xx: the server failed, also after the retries."""


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
    """Returns the error for a response that is not a success; its body must have been read before."""
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
