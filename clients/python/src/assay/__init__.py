"""Client of Assay: many small judgement tasks about one shared context in one request."""

from .client import AsyncAssay, Assay
from .complete import IncompleteError, ensure_complete
from .contract import CONTRACT_FINGERPRINT, CONTRACT_VERSION
from .errors import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    AssayError,
    AuthenticationError,
    BadRequestError,
    ConflictError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
    ServerError,
    UnprocessableEntityError,
)
from .model_server import ModelServer
from .models import (
    AudioInput,
    DecideResponse,
    DecideResult,
    DecideTask,
    ExtractResponse,
    ExtractTask,
    ImageInput,
    Message,
    RunTasksResponse,
)

__version__ = CONTRACT_VERSION

__all__ = [
    "APIConnectionError",
    "APIStatusError",
    "APITimeoutError",
    "Assay",
    "AssayError",
    "AsyncAssay",
    "AudioInput",
    "AuthenticationError",
    "BadRequestError",
    "CONTRACT_FINGERPRINT",
    "CONTRACT_VERSION",
    "ConflictError",
    "DecideResponse",
    "DecideResult",
    "DecideTask",
    "ExtractResponse",
    "ExtractTask",
    "ImageInput",
    "IncompleteError",
    "Message",
    "ModelServer",
    "NotFoundError",
    "PermissionDeniedError",
    "RateLimitError",
    "RunTasksResponse",
    "ServerError",
    "UnprocessableEntityError",
    "ensure_complete",
]
