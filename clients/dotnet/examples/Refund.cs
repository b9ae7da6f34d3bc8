// Asks two tasks about one mail in one request, then a choice with probabilities. Run `assay serve` first, and set
// ASSAY_API_KEY to the key that it prints.
using System;
using Assay.Client;

const string Mail =
    "Order A-1042 from Lumen Ltd arrived on 3 March with a broken lamp. I have asked twice for my 49.90 euro back. "
    + "Please refund me today!";

using AssayClient assay = new();
RunTasksResponse response = await assay.RunTasksAsync(new RunTasksRequest
{
    Model = "assay/starter",
    Context = Mail,
    Tasks =
    {
        new DecideTask { Name = "wants_refund", Question = "Does the customer want a refund?", Options = new[] { "yes", "no" } },
        new ExtractTask { Name = "order", Instruction = "Extract the order.", Keys = new[] { "order_id", "amount" } },
    },
    MaxOutputTokens = 64,
});
response.EnsureComplete();

Console.WriteLine($"wants a refund: {response.Results["wants_refund"].GetProperty("value")}");
Console.WriteLine($"order: {response.Results["order"]}");

DecisionsResponse decisions = await assay.DecisionsAsync(new DecisionsRequest
{
    Model = "assay/starter",
    Input = Mail,
    Questions =
    {
        new ChoiceQuestion
        {
            Instructions = "Which team should answer?",
            Choices = { new DecisionChoice { Value = "billing", Description = "Payments and refunds" }, new DecisionChoice { Value = "shipping" } },
        },
    },
});
if (decisions.Answers[0] is ChoiceAnswer team)
{
    foreach (ChoiceProbability one in team.Probabilities)
    {
        Console.WriteLine($"team {one.Value}: {one.Probability:0.000}");
    }
}
