use std::fmt;
use std::time::Duration;

use crate::models::ErrorBody;

/// The reason why a call failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A setting is missing or invalid; the text says which.
    Settings(String),
    /// A file of an image or a recording cannot be sent; the text says why.
    Media(String),
    /// No answer came within the timeout. The request is not sent again, because the server may have done it.
    Timeout(String),
    /// There is no answer: the server cannot be reached, the connection broke, or the response is not Assay's.
    Connection(String),
    /// The server sent an error response.
    Status(Box<StatusError>),
}

/// An error response of the server. Branch on `code`; the message is for logs, not for end users.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusError {
    pub kind: StatusKind,
    /// HTTP status.
    pub status: u16,
    /// Type of the error, such as `invalid_request_error`; `None` if a proxy answered and not Assay.
    pub error_type: Option<String>,
    /// Code of the error, such as `invalid_value`; `None` if a proxy answered and not Assay.
    pub code: Option<String>,
    /// Path of the invalid field, such as `tasks[2].options[0]`.
    pub param: Option<String>,
    pub message: String,
    /// Identifies the request in the server's log.
    pub request_id: Option<String>,
    /// Time to wait before a retry, if the server stated it.
    pub retry_after: Option<Duration>,
}

/// Kinds of error statuses that callers may want to distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StatusKind {
    /// 400: the request is malformed.
    BadRequest,
    /// 401: no API key, or an unknown one.
    Authentication,
    /// 403: the key may not use this model.
    PermissionDenied,
    /// 422: a value is invalid.
    Unprocessable,
    /// 429: too many requests, also after the retries.
    RateLimit,
    /// 5xx: the server failed, also after the retries.
    Server,
    /// Any other status.
    Other,
}

impl StatusKind {
    fn of(status: u16) -> Self {
        match status {
            400 => Self::BadRequest,
            401 => Self::Authentication,
            403 => Self::PermissionDenied,
            422 => Self::Unprocessable,
            429 => Self::RateLimit,
            500.. => Self::Server,
            _ => Self::Other,
        }
    }
}

impl StatusError {
    pub(crate) fn new(
        status: u16,
        request_id: Option<String>,
        retry_after: Option<Duration>,
        body: &str,
    ) -> Self {
        let details = serde_json::from_str::<ErrorBody>(body).ok().map(|body| body.error);
        let message = match &details {
            Some(details) => details.message.clone(),
            None => body.chars().take(200).collect(),
        };
        let (error_type, code, param) = match details {
            Some(details) => (Some(details.r#type), Some(details.code), details.param),
            None => (None, None, None),
        };
        let kind = StatusKind::of(status);
        Self { kind, status, error_type, code, param, message, request_id, retry_after }
    }
}

impl fmt::Display for StatusError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code.as_deref().unwrap_or("");
        let id = self.request_id.as_deref().unwrap_or("unknown");
        write!(out, "{} {code}: {} (request {id})", self.status, self.message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(text) | Self::Media(text) | Self::Timeout(text) | Self::Connection(text) => out.write_str(text),
            Self::Status(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for Error {}
impl std::error::Error for StatusError {}
