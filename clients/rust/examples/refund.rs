//! Two judgements about one mail, in one request. Run `assay serve` first, and set ASSAY_API_KEY to the key that it prints.

use assay::{ensure_complete, Assay, DecideTask, ExtractTask, RunTasksRequest};

const MAIL: &str = "Order A-1042 from Lumen Ltd arrived on 3 March with a broken lamp. \
    I have asked twice for my 49.90 euro back. Please refund me today!";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let assay = Assay::from_env()?;
    let wants_refund = DecideTask {
        options: Some(vec!["yes".into(), "no".into()]),
        ..DecideTask::new("wants_refund".into(), "Does the customer want a refund?".into())
    };
    let order = ExtractTask {
        keys: Some(vec!["order_id".into(), "amount".into()]),
        ..ExtractTask::new("order".into(), "Extract the order.".into())
    };
    let response = ensure_complete(assay.run_tasks(&RunTasksRequest {
        context: Some(MAIL.into()),
        max_output_tokens: Some(64),
        ..RunTasksRequest::new("assay/starter".into(), vec![wants_refund.into(), order.into()])
    })?)?;

    println!("wants a refund: {:?}", response.decision("wants_refund").map(|answer| answer.value));
    println!("order: {:?}", response.results["order"]);
    Ok(())
}
