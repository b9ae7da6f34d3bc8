"""Where the server is, how long to wait and when to send again: what all clients of this package share."""

from __future__ import annotations

import asyncio
import math
import os
import random
import time
from typing import Any

import httpx

from .contract import CONTRACT_VERSION
from .errors import APIConnectionError, APITimeoutError, AssayError, retry_after, status_error

DEFAULT_BASE_URL = "http://127.0.0.1:8080"
DEFAULT_TIMEOUT = 120.0
DEFAULT_MAX_RETRIES = 2

LONGEST_WAIT = 60.0
"""Seconds. A server that asks for more gets no second try: the caller decides."""

FIRST_BACKOFF = 0.5
LONGEST_BACKOFF = 8.0


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
    """
    Seconds to wait before sending again, or None for no second try: 429 after `Retry-After`, 5xx with a back-off that doubles,
    other statuses never. `attempt` counts from 0.
    """
    status = response.status_code
    if status != 429 and status < 500:
        return None
    named = retry_after(response)
    if named is not None:
        return named if named <= LONGEST_WAIT else None
    return min(LONGEST_BACKOFF, FIRST_BACKOFF * math.pow(2, attempt)) * random.uniform(0.75, 1.0)


def send(client: httpx.Client, max_retries: int, path: str, body: dict[str, Any] | None, **options: Any) -> Any:
    """POSTs JSON and gives the JSON that came back; raises an `AssayError` otherwise."""
    for attempt in range(max_retries + 1):
        try:
            response = client.post(path, json=body, **options)
        except httpx.HTTPError as error:
            raise connection_error(error) from error
        if response.is_success:
            return _json(response)
        wait = wait_before_retry(response, attempt)
        if wait is None or attempt == max_retries:
            raise status_error(response)
        time.sleep(wait)


async def send_async(client: httpx.AsyncClient, max_retries: int, path: str, body: dict[str, Any]) -> Any:
    """As `send`, without blocking the event loop."""
    for attempt in range(max_retries + 1):
        try:
            response = await client.post(path, json=body)
        except httpx.HTTPError as error:
            raise connection_error(error) from error
        if response.is_success:
            return _json(response)
        wait = wait_before_retry(response, attempt)
        if wait is None or attempt == max_retries:
            raise status_error(response)
        await asyncio.sleep(wait)


def connection_error(error: httpx.HTTPError) -> APIConnectionError:
    where = error.request.url if error._request else "the server"
    if isinstance(error, httpx.TimeoutException):
        return APITimeoutError(f"No answer from {where} in time. Raise timeout, or send less at once.")
    return APIConnectionError(f"No answer from {where}: {error}. Does the server run?")


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError as error:
        raise APIConnectionError(f"What came from {response.url} is not JSON. Is base_url that of Assay?") from error
