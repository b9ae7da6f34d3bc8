"""Manages the models on a machine: download, load, unload and delete. For chat, use the `openai` package."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO, TypeVar

import httpx
from pydantic import BaseModel
from typing_extensions import Self

from .connection import base_url_from, connection_error, foreign, headers_from, send
from .errors import APIStatusError, APITimeoutError, AssayError, status_error
from .models import DeleteResponse, DownloadProgress, DownloadResponse, LoadResponse, UnloadResponse
from .progress import ProgressLine
from .server_events import events_of

_Model = TypeVar("_Model", bound=BaseModel)


class ModelServer:
    """
    Client of Assay's model server. `base_url` defaults to ASSAY_URL, else http://127.0.0.1:8080. On the loopback address no key is needed.

    Calls have no time limit, because loading and compiling may take long. They raise an `AssayError`: `NotFoundError` if there is no such
    model, `ConflictError` if the model is in another state, and so on. Requests are never retried.
    """

    def __init__(
        self,
        base_url: str | None = None,
        *,
        api_key: str | None = None,
        progress: TextIO | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Creates a client. Downloads show their progress on `progress` (by default standard error) if it is a terminal."""
        headers = headers_from(api_key, required=False)
        timeout = httpx.Timeout(None, connect=10.0)
        self._http = httpx.Client(base_url=base_url_from(base_url), headers=headers, timeout=timeout, transport=transport)
        self._progress = progress if progress is not None else sys.stderr

    def download_model(self, model: str, timeout: float | None = None) -> DownloadResponse:
        """
        Downloads a model from the hub and compiles it; blocks until that is done, and shows progress on a terminal.

        `timeout` is in seconds; None means no limit. If it passes, raises `APITimeoutError`. The server continues the download, and a
        second call joins it.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with ProgressLine(self._progress) as line:
            try:
                return self._download(model, deadline, line)
            except httpx.TimeoutException as error:
                raise _too_late(model) from error
            except httpx.HTTPError as error:
                raise connection_error(error) from error

    def load_model(self, model: str) -> LoadResponse:
        """Loads a model that is on this machine."""
        return self._post("/v1/models/load", {"model": model}, LoadResponse)

    def unload_model(self) -> UnloadResponse:
        """Unloads the loaded model and frees its memory."""
        return self._post("/unload", {}, UnloadResponse)

    def delete_compiled(self, model: str) -> DeleteResponse:
        """Deletes the compiled files of a model; its weights stay."""
        return self._post("/v1/models/delete", {"model": model, "compiled_only": True}, DeleteResponse)

    def delete(self, model: str) -> DeleteResponse:
        """Deletes all files of a model: compiled files, weights and lock files."""
        return self._post("/v1/models/delete", {"model": model, "compiled_only": False}, DeleteResponse)

    def _post(self, path: str, body: dict[str, Any], answer: type[_Model]) -> _Model:
        return send(self._http, 0, path, body, answer)

    def _download(self, model: str, deadline: float | None, line: ProgressLine) -> DownloadResponse:
        headers = {"accept": "text/event-stream"}
        left = httpx.Timeout(None if deadline is None else max(0.001, deadline - time.monotonic()), connect=10.0)
        body = {"model": model}
        with self._http.stream("POST", "/v1/models/download", json=body, headers=headers, timeout=left) as response:
            if not response.is_success:
                response.read()
                raise status_error(response)
            try:
                for event in events_of(response.iter_lines(), lambda: _check(deadline, model)):
                    if isinstance(event.get("error"), dict):
                        raise _late_error(response, event)
                    if event.get("status") == "success":
                        return DownloadResponse.model_validate(event)
                    line.show(DownloadProgress.model_validate(event))
            except ValueError as error:
                raise foreign(response, error) from error
        raise AssayError(f"The server went away while it was downloading {model}. Call again: it goes on where it stopped.")

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check(deadline: float | None, model: str) -> None:
    if deadline is not None and time.monotonic() > deadline:
        raise _too_late(model)


def _too_late(model: str) -> APITimeoutError:
    return APITimeoutError(f"{model} is not ready in time. The server goes on downloading; call again to wait for it.")


_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "rate_limit_error": 429,
}
_STATUS_OF_CODE = {"hub_unreachable": 502, "disk_full": 507, "memory_full": 507}


def _late_error(response: httpx.Response, event: dict[str, Any]) -> APIStatusError:
    """Returns the error that an event of a stream reports. The stream itself had status 200, so the status is derived from the code."""
    error = event["error"]
    status = _STATUS_OF_CODE.get(error.get("code")) or _STATUS_OF_TYPE.get(error.get("type"), 500)
    return status_error(httpx.Response(status, json=event, headers={"x-request-id": response.headers.get("x-request-id", "")}))
