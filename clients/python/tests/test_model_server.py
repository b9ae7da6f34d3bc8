"""Tests `ModelServer` against the starter server, and against streams that a scripted transport sends."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Iterator

import httpx
import pytest
from assay import APIConnectionError, APIStatusError, APITimeoutError, AssayError, ModelServer, NotFoundError
from assay.models import DownloadProgress
from assay.progress import text_of

MODEL = "assay/starter"
DONE = {"status": "success", "model": MODEL, "state": "compiled", "bytes": 10, "compiled": True, "max_prompt_len": 4096}
HALF = {"status": "downloading", "model": MODEL, "bytes": 5_000_000, "total": 10_000_000}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Events(httpx.SyncByteStream):
    def __init__(self, *events: object, pause: float = 0.0) -> None:
        self._events = events
        self._pause = pause

    def __iter__(self) -> Iterator[bytes]:
        for event in self._events:
            time.sleep(self._pause)
            yield b": still here\n\n" if event is None else f"data: {json.dumps(event)}\n\n".encode()


def scripted(*events: object, pause: float = 0.0, **options: object) -> ModelServer:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/v1/models/download"
        assert request.headers["accept"] == "text/event-stream"
        assert json.loads(request.content) == {"model": MODEL}
        return httpx.Response(200, headers={"x-request-id": "r-7"}, stream=Events(*events, pause=pause))

    return ModelServer(transport=httpx.MockTransport(answer), **options)  # type: ignore[arg-type]


def test_load_and_unload() -> None:
    with ModelServer(os.environ["ASSAY_STARTER_URL"]) as server:
        assert server.unload_model().state == "unloaded"
        loaded = server.load_model(MODEL)
        assert (loaded.status, loaded.state, loaded.model) == ("success", "loaded", MODEL)


def test_errors_are_typed() -> None:
    with ModelServer(os.environ["ASSAY_STARTER_URL"]) as server:
        for call in (server.load_model, server.delete, server.delete_compiled):
            with pytest.raises(NotFoundError) as raised:
                call("nobody/nothing")
            assert raised.value.code == "model_not_found"


def test_delete_paths() -> None:
    sent: list[tuple[str, object]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append((request.url.path, json.loads(request.content)))
        removed = [{"kind": "compiled", "bytes": 3}]
        return httpx.Response(200, json={"status": "success", "model": MODEL, "state": "downloaded", "removed": removed})

    server = ModelServer(transport=httpx.MockTransport(answer))
    assert server.delete_compiled(MODEL).removed[0].kind == "compiled"
    server.delete(MODEL)
    assert sent == [
        ("/v1/models/delete", {"model": MODEL, "compiled_only": True}),
        ("/v1/models/delete", {"model": MODEL, "compiled_only": False}),
    ]


def test_download_shows_progress_on_a_terminal() -> None:
    terminal = Terminal()
    done = scripted(None, HALF, DONE, progress=terminal).download_model(MODEL)
    assert done.state == "compiled"
    assert "downloading assay/starter [############------------]  50% 5.0 of 10.0 MB" in terminal.getvalue()
    assert terminal.getvalue().endswith("\n")


def test_download_writes_nothing_to_a_pipe() -> None:
    pipe = io.StringIO()
    scripted(HALF, DONE, progress=pipe).download_model(MODEL)
    assert pipe.getvalue() == ""


def test_download_time_out_counts_the_whole_call() -> None:
    with pytest.raises(APITimeoutError, match="goes on downloading"):
        scripted(*[None] * 100, pause=0.05, progress=io.StringIO()).download_model(MODEL, timeout=0.3)


def test_download_error_after_the_stream_began() -> None:
    failed = {"error": {"type": "server_error", "message": "The hub is away.", "code": "hub_unreachable"}}
    with pytest.raises(APIStatusError) as raised:
        scripted(HALF, failed, progress=io.StringIO()).download_model(MODEL)
    assert (raised.value.status, raised.value.code, raised.value.request_id) == (502, "hub_unreachable", "r-7")


def test_download_that_ends_early() -> None:
    with pytest.raises(AssayError, match="goes on where it stopped"):
        scripted(HALF, progress=io.StringIO()).download_model(MODEL)


@pytest.mark.parametrize("event", [{"detail": "x"}, {"status": "success"}, {"error": "x"}, [], "x", float("nan")])
def test_download_from_somebody_else(event: object) -> None:
    with pytest.raises(APIConnectionError, match="is not Assay's"):
        scripted(event, progress=io.StringIO()).download_model(MODEL)


def test_an_answer_of_somebody_else() -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json={"detail": "x"}))
    with pytest.raises(APIConnectionError, match="is not Assay's"):
        ModelServer(transport=transport).load_model(MODEL)


def test_no_server() -> None:
    with pytest.raises(APIConnectionError):
        ModelServer("http://127.0.0.1:9", progress=io.StringIO()).download_model(MODEL)


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        ({"status": "verifying", "bytes": 0, "total": None}, "verifying a/b ..."),
        ({"status": "downloading", "bytes": 2_000_000, "total": None}, "downloading a/b 2.0 MB"),
        ({"status": "downloading", "bytes": 4, "total": 2}, f"downloading a/b [{'#' * 24}] 100% 0.0 of 0.0 MB"),
    ],
)
def test_progress_text(progress: dict[str, object], text: str) -> None:
    assert text_of(DownloadProgress(model="a/b", **progress)) == text  # type: ignore[arg-type]


def test_openai_beside_it() -> None:
    import openai

    url = os.environ["ASSAY_STARTER_URL"]
    ModelServer(url).load_model(MODEL)
    chat = openai.OpenAI(base_url=f"{url}/v1", api_key="unused").chat.completions
    answer = chat.create(model=MODEL, messages=[{"role": "user", "content": "Hello"}], max_tokens=8)
    assert isinstance(answer.choices[0].message.content, str)


def test_download_from_the_real_server() -> None:
    # The starter's weights are in the package, so this only verifies and compiles; no hub is contacted.
    with ModelServer(os.environ["ASSAY_STARTER_URL"], progress=io.StringIO()) as server:
        done = server.download_model(MODEL)
    assert (done.status, done.model, done.state) == ("success", MODEL, "compiled")
