use std::fmt;
use std::time::Duration;

use crate::models::ErrorBody;

/// What can go wrong in a call.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A setting is missing or wrong; the text says which.
    Settings(String),
    /// No answer came within the time-out. Not sent again: the work may have been done.
    Timeout(String),
    /// No answer came: the server cannot be reached, the connection broke, or what came is not Assay's.
    Connection(String),
    /// The server answered with an error.
    Status(Box<StatusError>),
}

/// An error that the server sent. Branch on `code`; the message is for logs, not for end users.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusError {
    pub kind: StatusKind,
    /// HTTP status.
    pub status: u16,
    /// Family of the error, such as `invalid_request_error`; none where a proxy answered and not Assay.
    pub error_type: Option<String>,
    /// What happened, such as `invalid_value`; none where a proxy answered and not Assay.
    pub code: Option<String>,
    /// Path of the field that is wrong, such as `tasks[2].options[0]`.
    pub param: Option<String>,
    pub message: String,
    /// Finds the request in the server's log.
    pub request_id: Option<String>,
    /// How long to wait, where the server named it.
    pub retry_after: Option<Duration>,
}

/// The statuses that callers tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StatusKind {
    /// 400: the request is malformed.
    BadRequest,
    /// 401: no key, or one that is not known.
    Authentication,
    /// 403: the key may not use this model.
    PermissionDenied,
    /// 422: a value is not valid.
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
            Self::Settings(text) | Self::Timeout(text) | Self::Connection(text) => out.write_str(text),
            Self::Status(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for Error {}
impl std::error::Error for StatusError {}
