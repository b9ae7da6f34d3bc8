"""Address of the server, timeouts and retries: shared by all clients of this package."""

from __future__ import annotations

import asyncio
import math
import os
import random
import time
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel

from .contract import CONTRACT_VERSION
from .errors import APIConnectionError, APITimeoutError, AssayError, retry_after, status_error

DEFAULT_BASE_URL = "http://127.0.0.1:8080"
DEFAULT_TIMEOUT = 120.0
DEFAULT_MAX_RETRIES = 2

LONGEST_WAIT = 60.0
"""Longest wait before a retry, in seconds. If the server asks for a longer one, the call fails and the caller decides."""

_Answer = TypeVar("_Answer", bound=BaseModel)

FIRST_BACKOFF = 0.5
LONGEST_BACKOFF = 8.0

_TOO_LONG = "The whole try took too long."


def base_url_from(given: str | None) -> str:
    url = (given or os.environ.get("ASSAY_URL") or DEFAULT_BASE_URL).rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise AssayError(f"{url} is no base URL. Pass one such as {DEFAULT_BASE_URL}, or set ASSAY_URL.")
    return url


def headers_from(api_key: str | None, *, required: bool) -> dict[str, str]:
    key = api_key or os.environ.get("ASSAY_API_KEY")
    if not key and required:
        raise AssayError("No API key: pass api_key, or set ASSAY_API_KEY. The server prints one at its first start.")
    headers = {"user-agent": f"assay-python/{CONTRACT_VERSION}"}
    return {**headers, "authorization": f"Bearer {key}"} if key else headers


def wait_before_retry(response: httpx.Response, attempt: int) -> float | None:
    """Returns the seconds to wait before a retry, or None for no retry: the time in `Retry-After` after 429, an exponential
    backoff after 5xx, and no retry after any other status. `attempt` counts from 0."""
    status = response.status_code
    if status != 429 and status < 500:
        return None
    named = retry_after(response)
    if named is not None:
        return named if named <= LONGEST_WAIT else None
    return min(LONGEST_BACKOFF, FIRST_BACKOFF * math.pow(2, attempt)) * random.uniform(0.75, 1.0)


def send(client: httpx.Client, max_retries: int, path: str, body: dict[str, Any], answer: type[_Answer]) -> _Answer:
    """Sends JSON with POST and returns the parsed answer; raises an `AssayError` for anything else."""
    attempt = 0
    while True:
        try:
            response = _post(client, path, body)
        except httpx.HTTPError as error:
            raise connection_error(error) from error
        if response.is_success:
            return _parse(response, answer)
        wait = wait_before_retry(response, attempt)
        if wait is None or attempt >= max_retries:
            raise status_error(response)
        time.sleep(wait)
        attempt += 1


async def send_async(
    client: httpx.AsyncClient, max_retries: int, path: str, body: dict[str, Any], answer: type[_Answer]
) -> _Answer:
    """Does the same as `send`, without blocking the event loop."""
    attempt = 0
    while True:
        try:
            response = await _post_async(client, path, body)
        except httpx.HTTPError as error:
            raise connection_error(error) from error
        if response.is_success:
            return _parse(response, answer)
        wait = wait_before_retry(response, attempt)
        if wait is None or attempt >= max_retries:
            raise status_error(response)
        await asyncio.sleep(wait)
        attempt += 1


def _post(client: httpx.Client, path: str, body: dict[str, Any]) -> httpx.Response:
    """Sends one request. The timeout applies to the whole attempt: httpx limits only each single wait, so this function checks the time
    whenever a part of the body arrives. It cannot interrupt a wait that has begun (for the connection, the headers, or the next part)."""
    limit = client.timeout.read
    deadline = math.inf if limit is None else time.monotonic() + limit
    chunks = []
    with client.stream("POST", path, json=body) as response:
        for chunk in response.iter_bytes():
            chunks.append(chunk)
            if time.monotonic() > deadline:
                raise httpx.ReadTimeout(_TOO_LONG, request=response.request)
    response.headers.pop("content-encoding", None)  # the chunks have none any more
    return httpx.Response(
        response.status_code, headers=response.headers, content=b"".join(chunks), request=response.request
    )


async def _post_async(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> httpx.Response:
    request = client.build_request("POST", path, json=body)
    try:
        return await asyncio.wait_for(client.send(request), client.timeout.read)
    except asyncio.TimeoutError as error:
        raise httpx.ReadTimeout(_TOO_LONG, request=request) from error


def connection_error(error: httpx.HTTPError) -> APIConnectionError:
    where = error.request.url if error._request else "the server"
    if isinstance(error, httpx.TimeoutException):
        return APITimeoutError(f"No answer from {where} in time. Raise timeout, or send less at once.")
    return APIConnectionError(f"No answer from {where}: {error}. Does the server run?")


def _parse(response: httpx.Response, answer: type[_Answer]) -> _Answer:
    try:
        return answer.model_validate(response.json())
    except ValueError as error:  # of JSON or of pydantic
        raise foreign(response, error) from error


def foreign(response: httpx.Response, error: ValueError) -> APIConnectionError:
    why = str(error).splitlines()[0]
    return APIConnectionError(f"What came from {response.url} is not Assay's: {why}. Is base_url right?")
