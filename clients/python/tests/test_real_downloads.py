"""Tests `ModelServer` against a real server and a hub, both on this machine. `npm run clients` starts them."""

from __future__ import annotations

import io
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from assay import (
    APITimeoutError,
    Assay,
    AssayError,
    ConflictError,
    DecideTask,
    ModelServer,
    NotFoundError,
    PermissionDeniedError,
    ensure_complete,
)
from test_model_server import Terminal

URL = os.environ["ASSAY_HUB_URL"]
CACHE = Path(os.environ["ASSAY_HUB_CACHE"])
SLOW = "acme/qwen3"
"""Model whose download takes more than six seconds."""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """Yields a client of a server that has no models."""
    with ModelServer(URL, progress=io.StringIO()) as server:
        server.unload_model()
        for model in (SLOW, "acme/llama"):
            with suppress(NotFoundError):
                server.delete(model)
        yield server


def files_of(model: str) -> list[Path]:
    """Returns the files of a model in the cache, including lock files."""
    name = f"models--{model.replace('/', '--')}"
    return [file for file in CACHE.glob(f"**/{name}/**/*") if file.is_file()]


def test_a_models_whole_life(server: ModelServer) -> None:
    done = server.download_model(SLOW)
    assert (done.model, done.state, done.compiled) == (SLOW, "compiled", True)
    assert sum(file.stat().st_size for file in files_of(SLOW) if not file.is_symlink()) >= done.bytes > 300_000

    loaded = server.load_model(SLOW)
    assert (loaded.model, loaded.state) == (SLOW, "loaded")
    with Assay(base_url=URL, api_key="demo") as assay:
        tasks = [DecideTask(name="one", question="Yes?", options=["yes", "no"])]
        answer = ensure_complete(assay.run_tasks(model=SLOW, context="x", tasks=tasks, max_output_tokens=64))
    assert answer.results["one"]["value"] in ("yes", "no")

    for refused in (server.delete, server.delete_compiled):
        with pytest.raises(ConflictError) as in_use:
            refused(SLOW)
        assert in_use.value.code == "model_in_use"
    assert server.unload_model().state == "unloaded"

    compiled = server.delete_compiled(SLOW)
    assert (compiled.state, [one.kind for one in compiled.removed]) == ("downloaded", ["compiled"])
    assert files_of(SLOW)
    assert server.load_model(SLOW).compiled is True
    server.unload_model()

    deleted = server.delete(SLOW)
    assert deleted.state == "deleted"
    assert {"compiled", "weights", "locks"} == {one.kind for one in deleted.removed}
    assert files_of(SLOW) == []
    with pytest.raises(NotFoundError):
        server.load_model(SLOW)


def test_time_out_then_a_second_call_joins(server: ModelServer) -> None:
    with pytest.raises(APITimeoutError, match="goes on downloading"):
        server.download_model(SLOW, timeout=0.5)
    for refused in (server.load_model, server.delete):
        with pytest.raises(ConflictError) as running:
            refused(SLOW)
        assert running.value.code == "operation_in_progress"

    terminal = Terminal()
    with ModelServer(URL, progress=terminal) as second:
        assert second.download_model(SLOW, timeout=120).state == "compiled"
    assert f"downloading {SLOW} [#" in terminal.getvalue()
    assert f"compiling {SLOW}" in terminal.getvalue()


def test_leaving_with_ctrl_c(server: ModelServer) -> None:
    ours, theirs = pty.openpty()
    code = f"from assay import ModelServer; ModelServer({URL!r}).download_model({SLOW!r})"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    said = read_until(ours, f"downloading {SLOW} [##")
    child.send_signal(signal.SIGINT)
    said += read_until(ours, "KeyboardInterrupt")
    assert child.wait(timeout=60) != 0
    os.close(ours)
    # The traceback begins on a line of its own, below the progress.
    assert "MB\r\nTraceback" in said
    assert server.download_model(SLOW).state == "compiled"


def read_until(terminal: int, wanted: str) -> str:
    said = ""
    while wanted not in said:
        said += os.read(terminal, 4096).decode()
    return said


def test_a_second_download_has_nothing_to_fetch(server: ModelServer) -> None:
    first = server.download_model("acme/llama")
    again = server.download_model("acme/llama")
    assert (first.compiled, again.compiled) == (True, False)


@pytest.mark.parametrize(
    ("model", "error", "status", "code"),
    [
        ("acme/nothing", NotFoundError, 404, "model_not_found"),
        ("acme/gated", PermissionDeniedError, 403, "model_not_allowed"),
    ],
)
def test_models_that_cannot_be_had(
    server: ModelServer, model: str, error: type[AssayError], status: int, code: str
) -> None:
    with pytest.raises(error) as raised:
        server.download_model(model)
    assert (raised.value.status, raised.value.code) == (status, code)  # type: ignore[attr-defined]
    assert raised.value.request_id  # type: ignore[attr-defined]
