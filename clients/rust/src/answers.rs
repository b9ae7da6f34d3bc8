use std::fmt;

use crate::models::{Choice, DecideResponse, DecideResult, DecideTask, ExtractResponse, ExtractTask, MultiTask};
use crate::models::{ChoiceQuestion, DecisionQuestion, ExtractQuestion, MultiQuestion, PredicateQuestion, ScoreQuestion};
use crate::models::{LabelChoiceQuestion, LabelMultiQuestion, LevelQuestion, NamedExtractQuestion, NoulQuestion};
use crate::models::{MessageContent, RunTasksResponse, SystemOneQuestion, Task};

/// Gives access to the members that the three responses have in common.
pub trait Answered {
    /// Returns the choices; there is exactly one.
    fn choices(&self) -> &[Choice];
    /// Returns the id of the request.
    fn id(&self) -> &str;
}

macro_rules! answered {
    ($($response:ty),*) => {$(
        impl Answered for $response {
            fn choices(&self) -> &[Choice] { &self.choices }
            fn id(&self) -> &str { &self.id }
        }
    )*};
}
answered!(RunTasksResponse, DecideResponse, ExtractResponse);

/// An answer that was cut; `response` has the part that was generated.
#[derive(Debug)]
pub struct Incomplete<R> {
    pub reason: IncompleteReason,
    pub request_id: String,
    pub response: R,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum IncompleteReason {
    /// The output limit was reached: raise `max_output_tokens` and send the request again.
    Length,
    /// The answer was filtered: sending the same input again does not help.
    ContentFilter,
}

/// Returns the response, or an error if its `finish_reason` says that the answer was cut.
pub fn ensure_complete<R: Answered>(response: R) -> Result<R, Incomplete<R>> {
    let reason = match response.choices().first().map(|choice| choice.finish_reason.as_str()) {
        Some("length") => IncompleteReason::Length,
        Some("content_filter") => IncompleteReason::ContentFilter,
        _ => return Ok(response),
    };
    Err(Incomplete { reason, request_id: response.id().to_owned(), response })
}

impl<R> fmt::Display for Incomplete<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.reason {
            IncompleteReason::Length => "The output limit was reached: raise max_output_tokens and send the request again.",
            IncompleteReason::ContentFilter => {
                "The answer was filtered: sending the same input again does not help."
            }
        };
        write!(out, "{why} (request {})", self.request_id)
    }
}

impl<R: fmt::Debug> std::error::Error for Incomplete<R> {}

impl RunTasksResponse {
    /// Returns the answer of a decide task; `None` if there is no such task, or if it is an extract task.
    pub fn decision(&self, name: &str) -> Option<DecideResult> {
        let members = self.results.get(name)?.clone().into_iter().collect();
        serde_json::from_value(serde_json::Value::Object(members)).ok()
    }
}

macro_rules! one_of {
    ($union:ty: $($variant:ident($from:ty)),*) => {$(
        impl From<$from> for $union {
            fn from(one: $from) -> Self { Self::$variant(one) }
        }
    )*};
}
one_of!(Task: Decide(DecideTask), Multi(MultiTask), Extract(ExtractTask));
one_of!(DecisionQuestion: Predicate(PredicateQuestion), Choice(ChoiceQuestion), Score(ScoreQuestion), Multi(MultiQuestion), Extract(ExtractQuestion));
one_of!(SystemOneQuestion: Noul(NoulQuestion), Choice(LabelChoiceQuestion), Score(LevelQuestion), Multi(LabelMultiQuestion), Extract(NamedExtractQuestion));

impl From<&str> for MessageContent {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
