use std::time::Duration;

use serde::{de::DeserializeOwned, Serialize};
use ureq::{http::Response, Agent, Body};

use crate::contract::CONTRACT_VERSION;
use crate::error::{Error, StatusError};
use crate::models::{DecideRequest, DecideResponse, DecisionsRequest, DecisionsResponse};
use crate::models::{ExtractRequest, ExtractResponse, RunTasksRequest, RunTasksResponse};
use crate::models::{RerankRequest, RerankResponse, SystemOneRequest, SystemOneResponse};
use crate::retry::{parse_retry_after, wait_before_retry};

const DEFAULT_BASE_URL: &str = "http://127.0.0.1:8080";

/// Largest answer that is read, in bytes; a longer one cannot come from Assay.
const LONGEST_ANSWER: u64 = 64 * 1024 * 1024;

/// Client of the decision service. Cheap to clone; clones share their connections.
///
/// ```no_run
/// use assay::{Assay, DecideRequest};
///
/// let assay = Assay::from_env()?;
/// let answer = assay.decide(&DecideRequest {
///     context: Some("Please refund me today!".into()),
///     options: Some(vec!["yes".into(), "no".into()]),
///     ..DecideRequest::new("assay/starter".into(), "Does the customer want a refund?".into())
/// })?;
/// println!("{}", answer.value);
/// # Ok::<(), assay::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Assay {
    agent: Agent,
    base_url: String,
    authorization: String,
    max_retries: u32,
}

/// Settings of a client. A setting that is not set comes from the environment or has a default.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    base_url: Option<String>,
    api_key: Option<String>,
    timeout: Option<Duration>,
    max_retries: Option<u32>,
}

impl Builder {
    /// Address of the server; default: the environment variable ASSAY_URL, else `http://127.0.0.1:8080`.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// API key; default: the environment variable ASSAY_API_KEY.
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// Timeout of each attempt; default two minutes.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Largest number of retries after status 429 or 5xx; default 2.
    pub fn max_retries(mut self, count: u32) -> Self {
        self.max_retries = Some(count);
        self
    }

    /// Creates the client; fails if there is no API key or the base URL is invalid.
    pub fn build(self) -> Result<Assay, Error> {
        let key = self.api_key.or_else(|| environment("ASSAY_API_KEY")).ok_or_else(|| {
            Error::Settings(
                "No API key: pass api_key, or set ASSAY_API_KEY. The server prints one at its first start.".into(),
            )
        })?;
        let url = self.base_url.or_else(|| environment("ASSAY_URL"));
        let url = url.unwrap_or_else(|| DEFAULT_BASE_URL.into());
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(Error::Settings(format!(
                "{url} is no base URL. Pass one such as {DEFAULT_BASE_URL}, or set ASSAY_URL."
            )));
        }
        let config = Agent::config_builder()
            .timeout_global(Some(self.timeout.unwrap_or(Duration::from_secs(120))))
            .http_status_as_error(false)
            .user_agent(format!("assay-rust/{CONTRACT_VERSION}"))
            .build();
        Ok(Assay {
            agent: config.into(),
            base_url: url.trim_end_matches('/').to_owned(),
            authorization: format!("Bearer {key}"),
            max_retries: self.max_retries.unwrap_or(2),
        })
    }
}

/// Returns an environment variable; an empty one counts as not set.
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Assay {
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Creates a client with all settings from the environment; fails if there is no ASSAY_API_KEY.
    pub fn from_env() -> Result<Self, Error> {
        Builder::default().build()
    }

    /// Answers a list of tasks about one shared context.
    pub fn run_tasks(&self, request: &RunTasksRequest) -> Result<RunTasksResponse, Error> {
        self.post("/v1/tasks", request)
    }

    /// Does the same as `run_tasks`. This is the operation's original name and path.
    pub fn decide_extract(&self, request: &RunTasksRequest) -> Result<RunTasksResponse, Error> {
        self.post("/v1/decide-extract", request)
    }

    /// Answers one question, with one of the options or in the model's own words.
    pub fn decide(&self, request: &DecideRequest) -> Result<DecideResponse, Error> {
        self.post("/decide", request)
    }

    /// Extracts one object with fields from a text.
    pub fn extract(&self, request: &ExtractRequest) -> Result<ExtractResponse, Error> {
        self.post("/extract", request)
    }

    /// Answers questions with the probability of every option, in the format of OpenAI's Decisions API.
    pub fn decisions(&self, request: &DecisionsRequest) -> Result<DecisionsResponse, Error> {
        self.post("/v1/decisions", request)
    }

    /// Answers named questions with the probability of every option, in the format of System One.
    pub fn system_one(&self, request: &SystemOneRequest) -> Result<SystemOneResponse, Error> {
        self.post("/v1/systemone", request)
    }

    /// Ranks documents by the probability that each is relevant to a query.
    pub fn rerank(&self, request: &RerankRequest) -> Result<RerankResponse, Error> {
        self.post("/v1/rerank", request)
    }

    /// Sends any JSON to a path of the decision service. Use it for fields that this version does not know:
    ///
    /// ```no_run
    /// # use assay::{Assay, DecideRequest, DecideResponse};
    /// # fn ask(assay: &Assay, request: &DecideRequest) -> Result<DecideResponse, Box<dyn std::error::Error>> {
    /// let mut body = serde_json::to_value(request)?;
    /// body["new_field"] = true.into();
    /// let answer: DecideResponse = assay.post("/decide", &body)?;
    /// # Ok(answer)
    /// # }
    /// ```
    pub fn post<R: DeserializeOwned>(&self, path: &str, request: &impl Serialize) -> Result<R, Error> {
        let body = serde_json::to_string(request).map_err(|error| Error::Settings(error.to_string()))?;
        let mut attempt = 0;
        loop {
            let mut response = self.send(path, &body)?;
            let status = response.status().as_u16();
            let text = response.body_mut().with_config().limit(LONGEST_ANSWER).read_to_string();
            let text = text.map_err(|error| self.failed(error))?;
            if (200..300).contains(&status) {
                return serde_json::from_str(&text).map_err(|error| self.foreign(&error));
            }
            let retry_after = header(&response, "retry-after").and_then(|text| parse_retry_after(&text));
            match wait_before_retry(status, retry_after, attempt) {
                Some(wait) if attempt < self.max_retries => std::thread::sleep(wait),
                _ => {
                    let id = header(&response, "x-request-id");
                    return Err(Error::Status(Box::new(StatusError::new(status, id, retry_after, &text))));
                }
            }
            attempt += 1;
        }
    }

    fn send(&self, path: &str, body: &str) -> Result<Response<Body>, Error> {
        self.agent
            .post(format!("{}{path}", self.base_url))
            .header("authorization", &self.authorization)
            .header("content-type", "application/json")
            .send(body)
            .map_err(|error| self.failed(error))
    }

    fn failed(&self, error: ureq::Error) -> Error {
        let url = &self.base_url;
        match error {
            ureq::Error::Timeout(_) => Error::Timeout(format!(
                "No answer from {url} in time. Raise the timeout, or send less at once."
            )),
            error => Error::Connection(format!("No answer from {url}: {error}. Does the server run?")),
        }
    }

    fn foreign(&self, error: &serde_json::Error) -> Error {
        let url = &self.base_url;
        Error::Connection(format!("What came from {url} is not Assay's: {error}. Is base_url right?"))
    }
}

fn header(response: &Response<Body>, name: &str) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}
