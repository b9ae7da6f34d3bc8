//! Runs the cases of clients/cases.json. ASSAY_CASES_URL and ASSAY_STARTER_URL come from `npm run clients`.

use std::time::{Duration, Instant};

use assay::{ensure_complete, Answered, Assay, Error, IncompleteReason, StatusKind};
use serde::{de::DeserializeOwned, Serialize};
use serde_json::Value;

#[test]
fn every_case() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../cases.json")).unwrap();
    let cases: Value = serde_json::from_str(&text).unwrap();
    let cases = cases["cases"].as_array().unwrap();
    assert!(cases.len() > 20);
    for case in cases {
        println!("{}", case["id"]);
        play(case);
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is set by npm run clients"))
}

fn play(case: &Value) {
    let expect = &case["expect"];
    seen(case);
    let begin = Instant::now();
    let client = client(case);
    match case["call"].as_str().unwrap() {
        "run_tasks" => check(expect, ask(case, &client, "/v1/tasks", Assay::run_tasks)),
        "decide_extract" => check(expect, ask(case, &client, "/v1/decide-extract", Assay::decide_extract)),
        "decide" => check(expect, ask(case, &client, "/decide", Assay::decide)),
        "extract" => check(expect, ask(case, &client, "/extract", Assay::extract)),
        "decisions" => drop(check_answers(expect, ask(case, &client, "/v1/decisions", Assay::decisions))),
        "system_one" => drop(check_answers(expect, ask(case, &client, "/v1/systemone", Assay::system_one))),
        "rerank" => drop(check_answers(expect, ask(case, &client, "/v1/rerank", Assay::rerank))),
        other => panic!("no call {other}"),
    }
    let least = expect["at_least_seconds"].as_f64().unwrap_or(0.0);
    assert!(begin.elapsed().as_secs_f64() >= least);
    let told = seen(case);
    if let Some(attempts) = expect["attempts"].as_u64() {
        assert_eq!(told["attempts"], attempts);
    }
    assert!(expect["sent"].is_null() || matches(&told["sent"], &expect["sent"]), "{}", told["sent"]);
}

/// Sends the request as a user would: with a type, or as plain JSON if it has fields that the type does not know.
fn ask<Q: DeserializeOwned + Serialize, R: DeserializeOwned>(
    case: &Value,
    client: &Assay,
    path: &str,
    call: fn(&Assay, &Q) -> Result<R, Error>,
) -> Result<R, Error> {
    let request: Q = serde_json::from_value(case["request"].clone()).unwrap();
    if members(&serde_json::to_value(&request).unwrap()) == members(&case["request"]) {
        return call(client, &request);
    }
    client.post(path, &case["request"])
}

/// Counts the members of all objects in a value.
fn members(value: &Value) -> usize {
    match value {
        Value::Object(found) => found.len() + found.values().map(members).sum::<usize>(),
        Value::Array(items) => items.iter().map(members).sum(),
        _ => 0,
    }
}

fn client(case: &Value) -> Assay {
    let url = match case["server"].as_str() {
        Some("starter") => variable("ASSAY_STARTER_URL"),
        Some("none") => "http://127.0.0.1:9".into(),
        _ => format!("{}/cases/{}", variable("ASSAY_CASES_URL"), case["id"].as_str().unwrap()),
    };
    let settings = &case["client"];
    let mut builder = Assay::builder().base_url(url);
    builder = builder.api_key(settings["api_key"].as_str().unwrap_or("demo"));
    if let Some(seconds) = settings["timeout_seconds"].as_f64() {
        builder = builder.timeout(Duration::from_secs_f64(seconds));
    }
    if let Some(count) = settings["max_retries"].as_u64() {
        builder = builder.max_retries(count as u32);
    }
    builder.build().unwrap()
}

fn check<R: Answered + Serialize + std::fmt::Debug>(expect: &Value, outcome: Result<R, Error>) {
    let Some(response) = check_answers(expect, outcome) else { return };
    let complete = ensure_complete(response);
    match expect["incomplete"].as_str() {
        None => assert!(complete.is_ok()),
        Some("length") => assert_eq!(complete.unwrap_err().reason, IncompleteReason::Length),
        Some(_) => assert_eq!(complete.unwrap_err().reason, IncompleteReason::ContentFilter),
    }
}

/// Returns the response; `None` if the case expects an error and got it.
fn check_answers<R: Serialize + std::fmt::Debug>(expect: &Value, outcome: Result<R, Error>) -> Option<R> {
    if expect["error"].is_object() {
        check_error(&expect["error"], outcome.unwrap_err());
        return None;
    }
    let response = outcome.unwrap();
    let json = serde_json::to_value(&response).unwrap();
    assert!(expect["response"].is_null() || matches(&json, &expect["response"]), "{json}");
    Some(response)
}

fn check_error(expected: &Value, error: Error) {
    let kind = match &error {
        Error::Settings(_) => "settings",
        Error::Timeout(_) => "timeout",
        Error::Connection(_) => "connection",
        Error::Status(error) => match error.kind {
            StatusKind::BadRequest => "bad_request",
            StatusKind::Authentication => "authentication",
            StatusKind::PermissionDenied => "permission",
            StatusKind::Unprocessable => "unprocessable",
            StatusKind::RateLimit => "rate_limit",
            StatusKind::Server => "server",
            _ if error.status == 404 => "not_found",
            _ => "other",
        },
        other => panic!("{other}"),
    };
    assert_eq!(expected["kind"], kind, "{error}");
    if let Some(text) = expected["message"].as_str() {
        assert!(error.to_string().contains(text), "{error}");
    }
    let Error::Status(error) = error else { return };
    for (name, value) in expected.as_object().unwrap() {
        let found = match name.as_str() {
            "kind" | "message" => continue,
            "status" => Value::from(error.status),
            "type" => Value::from(error.error_type.clone()),
            "code" => Value::from(error.code.clone()),
            "param" => Value::from(error.param.clone()),
            "request_id" => Value::from(error.request_id.clone()),
            "retry_after" => Value::from(error.retry_after.map(|wait| wait.as_secs())),
            other => panic!("no field {other}"),
        };
        assert_eq!(&found, value, "{name}");
    }
    assert!(error.code.is_none() || error.request_id.is_some());
}

/// Compares values with the expectations in cases.json.
fn matches(value: &Value, expected: &Value) -> bool {
    match expected {
        Value::Object(members) => {
            if let Some(any) = members.get("$oneOf") {
                return any.as_array().unwrap().contains(value);
            }
            if let Some(kind) = members.get("$type") {
                return if kind == "number" { value.is_number() } else { value.is_string() };
            }
            let Some(found) = value.as_object() else { return false };
            if let Some(keys) = members.get("$keys") {
                let keys = keys.as_array().unwrap();
                return found.len() == keys.len() && keys.iter().all(|key| found.contains_key(key.as_str().unwrap()));
            }
            members.iter().all(|(key, one)| found.get(key).is_some_and(|value| matches(value, one)))
        }
        Value::Array(items) => value.as_array().is_some_and(|found| {
            found.len() == items.len() && found.iter().zip(items).all(|(value, one)| matches(value, one))
        }),
        Value::Number(number) => value.as_f64() == number.as_f64(),
        _ => value == expected,
    }
}

fn seen(case: &Value) -> Value {
    let url = format!("{}/seen/{}", variable("ASSAY_CASES_URL"), case["id"].as_str().unwrap());
    let text = ureq::get(url).call().unwrap().body_mut().read_to_string().unwrap();
    serde_json::from_str(&text).unwrap()
}
