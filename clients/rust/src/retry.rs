use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

/// Longest wait before a retry. If the server asks for a longer one, the call fails and the caller decides.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
const FIRST_BACKOFF: f64 = 0.5;
const LONGEST_BACKOFF: f64 = 8.0;

/// Returns the time to wait before a retry, or `None` for no retry: the time in `Retry-After` after 429, an
/// exponential backoff after 5xx, and no retry after any other status. `attempt` counts from 0.
pub(crate) fn wait_before_retry(
    status: u16,
    retry_after: Option<Duration>,
    attempt: u32,
) -> Option<Duration> {
    if status != 429 && status < 500 {
        return None;
    }
    match retry_after {
        Some(named) => (named <= LONGEST_WAIT).then_some(named),
        None => {
            let seconds = (FIRST_BACKOFF * 2f64.powi(attempt as i32)).min(LONGEST_BACKOFF);
            Some(Duration::from_secs_f64(seconds * (0.75 + 0.25 * random())))
        }
    }
}

/// Parses the seconds of a `Retry-After` header.
pub(crate) fn parse_retry_after(text: &str) -> Option<Duration> {
    let seconds: f64 = text.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds.max(0.0)).ok()
}

/// Returns a random number from 0 to 1. The standard library's hasher has random keys, enough to spread retries.
fn random() -> f64 {
    RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64
}
