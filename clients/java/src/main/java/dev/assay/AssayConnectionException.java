package dev.assay;

/** No answer came: the server cannot be reached, or the connection broke. */
public class AssayConnectionException extends AssayException {
  private static final long serialVersionUID = 1L;

  public AssayConnectionException(String message, Throwable cause) {
    super(message, cause);
  }
}
