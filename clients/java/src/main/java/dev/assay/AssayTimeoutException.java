package dev.assay;

/** No answer within the timeout. The request is not sent again: the work may have been done. */
public class AssayTimeoutException extends AssayConnectionException {
  private static final long serialVersionUID = 1L;

  public AssayTimeoutException(String message, Throwable cause) {
    super(message, cause);
  }
}
