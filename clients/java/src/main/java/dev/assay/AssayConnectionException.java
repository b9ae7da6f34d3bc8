package dev.assay;

/** Thrown if there is no answer: the server cannot be reached, the connection broke, or the response is not Assay's. */
public class AssayConnectionException extends AssayException {
  private static final long serialVersionUID = 1L;

  public AssayConnectionException(String message, Throwable cause) {
    super(message, cause);
  }
}
