package dev.assay;

import dev.assay.model.Choice;
import dev.assay.model.DecideResponse;
import dev.assay.model.ExtractResponse;
import dev.assay.model.RunTasksResponse;
import java.util.List;
import java.util.Map;

/** Checks that an answer is complete. */
public final class Complete {
  private static final Map<String, String> WHY =
      Map.of(
          "length", "The output limit was reached: raise max_output_tokens and send the request again.",
          "content_filter", "The answer was filtered: sending the same input again does not help.");

  private Complete() {}

  /** Returns the response; throws {@link IncompleteException} if its finish reason says that the answer was cut. */
  public static RunTasksResponse ensureComplete(RunTasksResponse response) {
    return checked(response, response.getId(), response.getChoices());
  }

  /** Returns the response; throws {@link IncompleteException} if its finish reason says that the answer was cut. */
  public static DecideResponse ensureComplete(DecideResponse response) {
    return checked(response, response.getId(), response.getChoices());
  }

  /** Returns the response; throws {@link IncompleteException} if its finish reason says that the answer was cut. */
  public static ExtractResponse ensureComplete(ExtractResponse response) {
    return checked(response, response.getId(), response.getChoices());
  }

  private static <R> R checked(R response, String id, List<Choice> choices) {
    String reason = choices.get(0).getFinishReason();
    String why = WHY.get(reason);
    if (why != null) {
      throw new IncompleteException(reason, why, id, response);
    }
    return response;
  }
}
