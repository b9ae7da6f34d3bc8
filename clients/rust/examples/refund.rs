//! Asks two tasks about one mail in one request, then a choice with probabilities. Run `assay serve` first, and set
//! ASSAY_API_KEY to the key that it prints.

use assay::{ensure_complete, Assay, DecideTask, ExtractTask, RunTasksRequest};
use assay::{ChoiceQuestion, DecisionAnswer, DecisionChoice, DecisionsRequest};

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

    let choices = vec![
        DecisionChoice {
            description: Some("Payments and refunds".into()),
            ..DecisionChoice::new(Some("billing".into()))
        },
        DecisionChoice::new(Some("shipping".into())),
    ];
    let team = ChoiceQuestion::new(Some("Which team should answer?".into()), choices);
    let request = DecisionsRequest::new("assay/starter".into(), Some(MAIL.into()), vec![team.into()]);
    for answer in assay.decisions(&request)?.answers {
        let DecisionAnswer::Choice(team) = answer else { continue };
        for option in team.probabilities {
            println!("team {:?}: {:.3}", option.value, option.probability);
        }
    }
    Ok(())
}
