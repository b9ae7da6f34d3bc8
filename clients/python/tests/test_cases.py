"""Runs the cases of clients/cases.json. ASSAY_CASES_URL and ASSAY_STARTER_URL come from `npm run clients`."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import assay
import httpx
import pytest
from assay.models import DecideRequest, DecisionsRequest, ExtractRequest, RerankRequest, RunTasksRequest, SystemOneRequest
from matching import matches

CASES = json.loads((Path(__file__).parents[2] / "cases.json").read_text())["cases"]
CASES_URL = os.environ["ASSAY_CASES_URL"]
URLS = {"starter": os.environ["ASSAY_STARTER_URL"], "none": "http://127.0.0.1:9"}

KINDS = {
    "bad_request": assay.BadRequestError,
    "authentication": assay.AuthenticationError,
    "permission": assay.PermissionDeniedError,
    "unprocessable": assay.UnprocessableEntityError,
    "rate_limit": assay.RateLimitError,
    "server": assay.ServerError,
    "not_found": assay.NotFoundError,
    "other": assay.APIStatusError,
    "timeout": assay.APITimeoutError,
    "connection": assay.APIConnectionError,
}

TASKS = {"decide": assay.DecideTask, "extract": assay.ExtractTask}
REQUESTS = {
    "run_tasks": RunTasksRequest,
    "decide_extract": RunTasksRequest,
    "decide": DecideRequest,
    "extract": ExtractRequest,
    "decisions": DecisionsRequest,
    "system_one": SystemOneRequest,
    "rerank": RerankRequest,
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(case: dict[str, Any]) -> None:
    with assay.Assay(**settings(case)) as client:
        play(case, lambda: getattr(client, case["call"])(**typed(case["call"], case["request"])))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case_async(case: dict[str, Any]) -> None:
    async def call() -> Any:
        async with assay.AsyncAssay(**settings(case)) as client:
            return await getattr(client, case["call"])(**typed(case["call"], case["request"]))

    play(case, lambda: asyncio.run(call()))


def settings(case: dict[str, Any]) -> dict[str, Any]:
    client = case.get("client", {})
    named = {"timeout" if name == "timeout_seconds" else name: value for name, value in client.items()}
    return {"base_url": URLS.get(case.get("server", ""), f"{CASES_URL}/cases/{case['id']}"), "api_key": "demo", **named}


def typed(call: str, request: dict[str, Any]) -> dict[str, Any]:
    """Builds the arguments as a user would: tasks as classes, and unknown fields in `extra_body`."""
    known = REQUESTS[call].model_fields
    extra = {name: value for name, value in request.items() if name not in known}
    fields = {name: value for name, value in request.items() if name in known}
    if "tasks" in fields:
        fields["tasks"] = [
            TASKS[task["type"]](**{k: v for k, v in task.items() if k != "type"}) for task in request["tasks"]
        ]
    return {**fields, **({"extra_body": extra} if extra else {})}


def play(case: dict[str, Any], call: Any) -> None:
    expected = case["expect"]
    seen(case)
    begin = time.monotonic()
    if "error" in expected:
        check_error(call, expected["error"])
    else:
        response = call()
        assert matches(json.loads(response.model_dump_json(by_alias=True)), expected.get("response", {}))
        if hasattr(response, "choices"):
            check_complete(response, expected.get("incomplete"))
    assert time.monotonic() - begin >= expected.get("at_least_seconds", 0)
    check_seen(seen(case), expected)


def check_error(call: Any, expected: dict[str, Any]) -> None:
    with pytest.raises(assay.AssayError) as raised:
        call()
    error = raised.value
    assert type(error) is KINDS[expected["kind"]]
    for name, value in expected.items():
        if name == "message":
            assert value in str(error)
        elif name != "kind":
            assert getattr(error, name) == value
    if isinstance(error, assay.APIStatusError) and error.code is not None:
        assert error.request_id


def check_complete(response: Any, incomplete: str | None) -> None:
    if incomplete is None:
        assert assay.ensure_complete(response) is response
        return
    with pytest.raises(assay.IncompleteError) as raised:
        assay.ensure_complete(response)
    assert raised.value.finish_reason == incomplete
    assert raised.value.response is response


def check_seen(told: dict[str, Any], expected: dict[str, Any]) -> None:
    assert told["attempts"] == expected.get("attempts", told["attempts"])
    assert matches(told["sent"], expected.get("sent", told["sent"]))


def seen(case: dict[str, Any]) -> dict[str, Any]:
    return httpx.get(f"{CASES_URL}/seen/{case['id']}").json()
