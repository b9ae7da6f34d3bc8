"""Clients of the decision service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel
from typing_extensions import Self, TypedDict, Unpack

from .connection import DEFAULT_MAX_RETRIES, DEFAULT_TIMEOUT, base_url_from, headers_from, send, send_async
from .models import (
    AudioInput,
    DecideRequest,
    DecideResponse,
    DecisionItem,
    DecisionQuestion,
    DecisionsRequest,
    DecisionsResponse,
    ExtractRequest,
    ExtractResponse,
    ExtractionField,
    ExtractionsRequest,
    ExtractionsResponse,
    ImageInput,
    Language,
    Message,
    RerankRequest,
    RerankResponse,
    ResponseFormat,
    RunTasksRequest,
    RunTasksResponse,
    SystemOneQuestion,
    SystemOneRequest,
    SystemOneResponse,
    Task,
)


Answer = TypeVar("Answer", bound=BaseModel)


class SharedFields(TypedDict, total=False):
    """Fields of every request. Send exactly one of `context` and `messages`. `extra_body` is merged into the body that is sent, for fields
    that this version does not know."""

    context: str
    messages: Sequence[Message]
    images: Sequence[ImageInput]
    audio: Sequence[AudioInput]
    temperature: float
    max_output_tokens: int
    response_format: ResponseFormat
    target_language: Language
    output_language: Language
    extra_body: Mapping[str, Any]


class DecideFields(SharedFields, total=False):
    options: Sequence[str]
    choices: Sequence[str]
    instruction: str


class ExtractFields(SharedFields, total=False):
    keys: Sequence[str]
    fields: Sequence[str]
    schema: dict[str, Any]


class ExtractionOptions(TypedDict, total=False):
    """Optional fields of an extraction. Without `model`, the loaded one answers."""

    model: str
    questions: Mapping[str, SystemOneQuestion]
    images: Sequence[Any]
    reference_date: str
    options: Mapping[str, Any]
    calibrated: bool
    max_output_tokens: int
    extra_body: Mapping[str, Any]


class RankFields(TypedDict, total=False):
    """Optional fields of a ranking. Without `model`, the loaded one answers."""

    model: str
    instruction: str
    top_n: int
    return_documents: bool
    calibrated: bool
    extra_body: Mapping[str, Any]


class QuestionFields(TypedDict, total=False):
    """Settings of the two decision formats. `extra_body` is merged into the body that is sent, for fields that this version does not know."""

    orders: int
    abstain_below: float
    confidence: str
    calibrated: bool
    max_output_tokens: int
    extra_body: Mapping[str, Any]


class Assay:
    """
    Client of the decision service. Safe to share between threads; close it, or use it in a `with` block.

    `base_url` and `api_key` default to the environment's ASSAY_URL (else http://127.0.0.1:8080) and ASSAY_API_KEY. `timeout` is in
    seconds, for each try. 429 and 5xx are sent again, up to `max_retries` times. Calls raise an `AssayError`; only an argument of a wrong
    type is pydantic's `ValidationError`, a `ValueError`, before anything is sent.
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_MAX_RETRIES,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        headers = headers_from(api_key, required=True)
        self._http = httpx.Client(base_url=base_url_from(base_url), headers=headers, timeout=timeout, transport=transport)
        self._max_retries = max_retries

    def run_tasks(self, *, model: str, tasks: Sequence[Task], **fields: Unpack[SharedFields]) -> RunTasksResponse:
        """Answers a list of tasks about one shared context."""
        return self._send("/v1/tasks", tasks_body(model, tasks, fields), RunTasksResponse)

    def decide_extract(self, *, model: str, tasks: Sequence[Task], **fields: Unpack[SharedFields]) -> RunTasksResponse:
        """Does the same as `run_tasks`. This is the operation's original name and path."""
        return self._send("/v1/decide-extract", tasks_body(model, tasks, fields), RunTasksResponse)

    def decide(self, *, model: str, question: str, **fields: Unpack[DecideFields]) -> DecideResponse:
        """Answers one question, with one of the options or in the model's own words."""
        return self._send("/decide", decide_body(model, question, fields), DecideResponse)

    def extract(self, *, model: str, instruction: str, **fields: Unpack[ExtractFields]) -> ExtractResponse:
        """Extracts one object with fields from a text."""
        return self._send("/extract", extract_body(model, instruction, fields), ExtractResponse)

    def decisions(
        self,
        *,
        model: str,
        input: str | Sequence[DecisionItem],
        questions: Sequence[DecisionQuestion],
        **fields: Unpack[QuestionFields],
    ) -> DecisionsResponse:
        """Answers questions with the probability of every option, in the format of OpenAI's Decisions API."""
        return self._send("/v1/decisions", decisions_body(model, input, questions, fields), DecisionsResponse)

    def system_one(
        self,
        *,
        model: str,
        state: str | dict[str, Any] | list[Any],
        questions: Mapping[str, SystemOneQuestion],
        **fields: Unpack[QuestionFields],
    ) -> SystemOneResponse:
        """Answers named questions with the probability of every option, in the format of System One."""
        return self._send("/v1/systemone", system_one_body(model, state, questions, fields), SystemOneResponse)

    def extractions(
        self,
        *,
        state: str | dict[str, Any] | list[Any],
        fields: Mapping[str, ExtractionField],
        **options: Unpack[ExtractionOptions],
    ) -> ExtractionsResponse:
        """Extracts typed fields of a text, each with the probability that the text does not contain it."""
        return self._send("/v1/extractions", extractions_body(state, fields, options), ExtractionsResponse)

    def rerank(self, *, query: str, documents: Sequence[str], **fields: Unpack[RankFields]) -> RerankResponse:
        """Ranks documents by the probability that each is relevant to a query."""
        return self._send("/v1/rerank", rerank_body(query, documents, fields), RerankResponse)

    def _send(self, path: str, body: dict[str, Any], answer: type[Answer]) -> Answer:
        return send(self._http, self._max_retries, path, body, answer)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncAssay:
    """Client of the decision service for asyncio; otherwise the same as `Assay`."""

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_MAX_RETRIES,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        headers = headers_from(api_key, required=True)
        url = base_url_from(base_url)
        self._http = httpx.AsyncClient(base_url=url, headers=headers, timeout=timeout, transport=transport)
        self._max_retries = max_retries

    async def run_tasks(self, *, model: str, tasks: Sequence[Task], **fields: Unpack[SharedFields]) -> RunTasksResponse:
        """Answers a list of tasks about one shared context."""
        return await self._send("/v1/tasks", tasks_body(model, tasks, fields), RunTasksResponse)

    async def decide_extract(
        self, *, model: str, tasks: Sequence[Task], **fields: Unpack[SharedFields]
    ) -> RunTasksResponse:
        """Does the same as `run_tasks`. This is the operation's original name and path."""
        return await self._send("/v1/decide-extract", tasks_body(model, tasks, fields), RunTasksResponse)

    async def decide(self, *, model: str, question: str, **fields: Unpack[DecideFields]) -> DecideResponse:
        """Answers one question, with one of the options or in the model's own words."""
        return await self._send("/decide", decide_body(model, question, fields), DecideResponse)

    async def extract(self, *, model: str, instruction: str, **fields: Unpack[ExtractFields]) -> ExtractResponse:
        """Extracts one object with fields from a text."""
        return await self._send("/extract", extract_body(model, instruction, fields), ExtractResponse)

    async def decisions(
        self,
        *,
        model: str,
        input: str | Sequence[DecisionItem],
        questions: Sequence[DecisionQuestion],
        **fields: Unpack[QuestionFields],
    ) -> DecisionsResponse:
        """Answers questions with the probability of every option, in the format of OpenAI's Decisions API."""
        return await self._send("/v1/decisions", decisions_body(model, input, questions, fields), DecisionsResponse)

    async def system_one(
        self,
        *,
        model: str,
        state: str | dict[str, Any] | list[Any],
        questions: Mapping[str, SystemOneQuestion],
        **fields: Unpack[QuestionFields],
    ) -> SystemOneResponse:
        """Answers named questions with the probability of every option, in the format of System One."""
        return await self._send("/v1/systemone", system_one_body(model, state, questions, fields), SystemOneResponse)

    async def extractions(
        self,
        *,
        state: str | dict[str, Any] | list[Any],
        fields: Mapping[str, ExtractionField],
        **options: Unpack[ExtractionOptions],
    ) -> ExtractionsResponse:
        """Extracts typed fields of a text, each with the probability that the text does not contain it."""
        return await self._send("/v1/extractions", extractions_body(state, fields, options), ExtractionsResponse)

    async def rerank(self, *, query: str, documents: Sequence[str], **fields: Unpack[RankFields]) -> RerankResponse:
        """Ranks documents by the probability that each is relevant to a query."""
        return await self._send("/v1/rerank", rerank_body(query, documents, fields), RerankResponse)

    async def _send(self, path: str, body: dict[str, Any], answer: type[Answer]) -> Answer:
        return await send_async(self._http, self._max_retries, path, body, answer)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def tasks_body(model: str, tasks: Sequence[Task], fields: SharedFields) -> dict[str, Any]:
    return _body(RunTasksRequest(model=model, tasks=list(tasks), **fields))


def decide_body(model: str, question: str, fields: DecideFields) -> dict[str, Any]:
    return _body(DecideRequest(model=model, question=question, **fields))


def extract_body(model: str, instruction: str, fields: ExtractFields) -> dict[str, Any]:
    return _body(ExtractRequest(model=model, instruction=instruction, **fields))


def decisions_body(
    model: str, input: str | Sequence[DecisionItem], questions: Sequence[DecisionQuestion], fields: QuestionFields
) -> dict[str, Any]:
    sent = input if isinstance(input, str) else list(input)
    return _body(DecisionsRequest(model=model, input=sent, questions=list(questions), **fields))


def system_one_body(
    model: str, state: str | dict[str, Any] | list[Any], questions: Mapping[str, SystemOneQuestion], fields: QuestionFields
) -> dict[str, Any]:
    return _body(SystemOneRequest(model=model, state=state, questions=dict(questions), **fields))


def extractions_body(
    state: str | dict[str, Any] | list[Any], fields: Mapping[str, ExtractionField], options: ExtractionOptions
) -> dict[str, Any]:
    return _body(ExtractionsRequest(state=state, fields=dict(fields), **options))


def rerank_body(query: str, documents: Sequence[str], fields: RankFields) -> dict[str, Any]:
    return _body(RerankRequest(query=query, documents=list(documents), **fields))


def _body(request: BaseModel) -> dict[str, Any]:
    """Converts a request to JSON values. Fields that are not set are omitted, so that the server's defaults apply."""
    body = request.model_dump(mode="json", by_alias=True, exclude_none=True)
    extra = body.pop("extra_body", {})
    return {**body, **extra}
