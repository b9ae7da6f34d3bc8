package dev.assay;

/** Base class of all exceptions of this package. */
public class AssayException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public AssayException(String message) {
    super(message);
  }

  public AssayException(String message, Throwable cause) {
    super(message, cause);
  }
}
