import static dev.assay.Complete.ensureComplete;

import dev.assay.Assay;
import dev.assay.model.ChoiceAnswer;
import dev.assay.model.ChoiceQuestion;
import dev.assay.model.DecideTask;
import dev.assay.model.DecisionChoice;
import dev.assay.model.DecisionsRequest;
import dev.assay.model.DecisionsResponse;
import dev.assay.model.ExtractTask;
import dev.assay.model.RunTasksRequest;
import dev.assay.model.RunTasksResponse;
import java.util.List;

/**
 * Asks two tasks about one mail in one request, then a choice with probabilities. Run {@code assay serve} first, and
 * set ASSAY_API_KEY to the key that it prints.
 */
public class Refund {
  private static final String MAIL =
      "Order A-1042 from Lumen Ltd arrived on 3 March with a broken lamp. I have asked twice for my 49.90 euro back. "
          + "Please refund me today!";

  public static void main(String[] args) {
    Assay assay = Assay.fromEnvironment();
    RunTasksResponse response =
        ensureComplete(
            assay.runTasks(
                new RunTasksRequest()
                    .model("assay/starter")
                    .context(MAIL)
                    .addTasksItem(
                        new DecideTask()
                            .name("wants_refund")
                            .question("Does the customer want a refund?")
                            .options(List.of("yes", "no")))
                    .addTasksItem(
                        new ExtractTask()
                            .name("order")
                            .instruction("Extract the order.")
                            .keys(List.of("order_id", "amount")))
                    .maxOutputTokens(64)));

    System.out.println("wants a refund: " + response.getResults().get("wants_refund").get("value"));
    System.out.println("order: " + response.getResults().get("order"));

    DecisionsResponse decisions =
        assay.decisions(
            new DecisionsRequest()
                .model("assay/starter")
                .input(MAIL)
                .addQuestionsItem(
                    new ChoiceQuestion()
                        .instructions("Which team should answer?")
                        .addChoicesItem(new DecisionChoice().value("billing").description("Payments and refunds"))
                        .addChoicesItem(new DecisionChoice().value("shipping"))));
    if (decisions.getAnswers().get(0) instanceof ChoiceAnswer team) {
      team.getProbabilities().forEach(one -> System.out.println("team " + one.getValue() + ": " + one.getProbability()));
    }
  }
}
