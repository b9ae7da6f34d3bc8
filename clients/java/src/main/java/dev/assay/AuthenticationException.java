package dev.assay;

import java.net.http.HttpResponse;

/** Thrown for status 401: the API key is missing or unknown. */
public final class AuthenticationException extends AssayStatusException {
  private static final long serialVersionUID = 1L;

  AuthenticationException(HttpResponse<String> response) {
    super(response);
  }
}
