"""Tests where settings come from, and the contents of the package."""

from __future__ import annotations

import hashlib
from importlib.metadata import distribution, version
from pathlib import Path

import assay
import httpx
import pytest


def asked(**settings: str) -> httpx.Request:
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(401, json={"error": {"type": "authentication_error", "message": "no", "code": "invalid_api_key"}})

    with pytest.raises(assay.AuthenticationError):
        assay.Assay(transport=httpx.MockTransport(answer), **settings).decide(model="a/b", question="?", context="x")
    return requests[0]


def test_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_URL", "http://box:1/base/")
    monkeypatch.setenv("ASSAY_API_KEY", "from-environment")
    request = asked()
    assert str(request.url) == "http://box:1/base/decide"
    assert request.headers["authorization"] == "Bearer from-environment"
    assert request.headers["user-agent"] == f"assay-python/{assay.CONTRACT_VERSION}"


def test_arguments_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_URL", "http://box:1")
    monkeypatch.setenv("ASSAY_API_KEY", "from-environment")
    request = asked(base_url="http://other:2", api_key="given")
    assert str(request.url) == "http://other:2/decide"
    assert request.headers["authorization"] == "Bearer given"


def test_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASSAY_API_KEY", raising=False)
    with pytest.raises(assay.AssayError, match="ASSAY_API_KEY"):
        assay.Assay()


def test_what_the_package_was_made_from() -> None:
    contract = (Path(__file__).parents[3] / "openapi.json").read_bytes()
    assert hashlib.sha256(contract).hexdigest() == assay.CONTRACT_FINGERPRINT
    assert version("assay-client") == assay.CONTRACT_VERSION == assay.__version__


def test_the_package_has_the_licence() -> None:
    licence = (Path(__file__).parents[3] / "LICENSE").read_text()
    assert distribution("assay-client").read_text("licenses/LICENSE") == licence


def test_an_argument_of_a_wrong_type_is_not_sent() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise AssertionError("It was sent.")

    client = assay.Assay(api_key="k", transport=httpx.MockTransport(answer))
    with pytest.raises(ValueError, match="options"):
        client.decide(model="a/b", question="?", context="x", options="yes")


def test_a_base_url_needs_its_scheme() -> None:
    with pytest.raises(assay.AssayError, match="127.0.0.1:8080 is no base URL"):
        assay.Assay(base_url="127.0.0.1:8080", api_key="k")
