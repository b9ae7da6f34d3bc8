package dev.assay;

import java.net.http.HttpResponse;

/** Thrown for status 422: a value is invalid. */
public final class UnprocessableEntityException extends AssayStatusException {
  private static final long serialVersionUID = 1L;

  UnprocessableEntityException(HttpResponse<String> response) {
    super(response);
  }
}
