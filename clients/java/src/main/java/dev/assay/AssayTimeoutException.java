package dev.assay;

/** Thrown if no answer came within the timeout. The request is not sent again, because the server may have done it. */
public class AssayTimeoutException extends AssayConnectionException {
  private static final long serialVersionUID = 1L;

  public AssayTimeoutException(String message, Throwable cause) {
    super(message, cause);
  }
}
