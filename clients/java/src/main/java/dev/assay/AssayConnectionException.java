package dev.assay;

/** No answer came: the server cannot be reached, the connection broke, or what came is not Assay's. */
public class AssayConnectionException extends AssayException {
  private static final long serialVersionUID = 1L;

  public AssayConnectionException(String message, Throwable cause) {
    super(message, cause);
  }
}
