"""
Asks two tasks about one mail in one request, then a choice with probabilities. Run `assay serve` first, and set
ASSAY_API_KEY to the key that it prints.
"""

from assay import Assay, ChoiceQuestion, DecideTask, DecisionChoice, ExtractTask, ensure_complete

MAIL = (
    "Order A-1042 from Lumen Ltd arrived on 3 March with a broken lamp. I have asked twice for my 49.90 euro back. "
    "Please refund me today!"
)

with Assay() as assay:
    response = ensure_complete(
        assay.run_tasks(
            model="assay/starter",
            context=MAIL,
            tasks=[
                DecideTask(name="wants_refund", question="Does the customer want a refund?", options=["yes", "no"]),
                ExtractTask(name="order", instruction="Extract the order.", keys=["order_id", "amount"]),
            ],
            max_output_tokens=64,
        )
    )
    choices = [DecisionChoice(value="billing", description="Payments and refunds"), DecisionChoice(value="shipping")]
    team = assay.decisions(
        model="assay/starter",
        input=MAIL,
        questions=[ChoiceQuestion(instructions="Which team should answer?", choices=choices)],
    ).answers[0]

print("wants a refund:", response.results["wants_refund"]["value"])
print("order:", response.results["order"])
if team.type == "choice":
    print("team:", {str(one.value): one.probability for one in team.probabilities})
