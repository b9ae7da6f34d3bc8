package dev.assay;

import java.net.http.HttpResponse;

/** Thrown for status 403: the key may not use this model. */
public final class PermissionDeniedException extends AssayStatusException {
  private static final long serialVersionUID = 1L;

  PermissionDeniedException(HttpResponse<String> response) {
    super(response);
  }
}
