package dev.assay;

/** No answer came within the time-out. Not sent again: the work may have been done. */
public class AssayTimeoutException extends AssayConnectionException {
  private static final long serialVersionUID = 1L;

  public AssayTimeoutException(String message, Throwable cause) {
    super(message, cause);
  }
}
