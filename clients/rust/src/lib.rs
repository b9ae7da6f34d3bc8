//! Client of Assay: many small judgement tasks about one shared context in one request.
//!
//! Calls block; from async code, use your runtime's `spawn_blocking`. See [`Assay`].

mod answers;
mod client;
mod contract;
mod error;
mod media;
#[rustfmt::skip]
#[allow(clippy::all, unused_imports)]
pub mod models;
mod retry;

pub use answers::{ensure_complete, Answered, Incomplete, IncompleteReason};
pub use client::{Assay, Builder};
pub use contract::{CONTRACT_FINGERPRINT, CONTRACT_VERSION};
pub use error::{Error, StatusError, StatusKind};
pub use media::{audio_input, image_input};
pub use models::{
    AudioInput, ChoiceQuestion, DecideRequest, DecideResponse, DecideResult, DecideTask, DecisionAnswer, DecisionChoice,
    DecisionLevel, DecisionQuestion, DecisionsRequest, DecisionsResponse, ExtractQuestion, ExtractRequest,
    ExtractResponse, ExtractTask, ImageInput, LabelChoiceQuestion, LabelMultiQuestion, LevelQuestion, Message, MessageContent, NamedExtractQuestion,
    MultiQuestion, MultiTask, NoulQuestion, PredicateQuestion, RerankRequest, RerankResponse, RunTasksRequest, RunTasksResponse, ScoreQuestion, SystemOneAnswer,
    SystemOneQuestion, SystemOneRequest, SystemOneResponse, Task,
};
