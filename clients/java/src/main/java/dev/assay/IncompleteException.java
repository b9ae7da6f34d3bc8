package dev.assay;

/** Thrown for an answer that was cut. {@link #response()} is the response with the part that was generated. */
public final class IncompleteException extends AssayException {
  private static final long serialVersionUID = 1L;

  private final String finishReason;
  private final transient Object response;

  IncompleteException(String finishReason, String why, String requestId, Object response) {
    super(why + " (request " + requestId + ")");
    this.finishReason = finishReason;
    this.response = response;
  }

  /** {@code length} or {@code content_filter}. */
  public String finishReason() {
    return finishReason;
  }

  /** The RunTasksResponse, DecideResponse or ExtractResponse. */
  public Object response() {
    return response;
  }
}
