package dev.assay;

import java.net.http.HttpResponse;

/** Thrown for status 400: the request is malformed. */
public final class BadRequestException extends AssayStatusException {
  private static final long serialVersionUID = 1L;

  BadRequestException(HttpResponse<String> response) {
    super(response);
  }
}
