package dev.assay;

import java.net.http.HttpResponse;

/** 401: no API key, or an unknown one. */
public final class AuthenticationException extends AssayStatusException {
  private static final long serialVersionUID = 1L;

  AuthenticationException(HttpResponse<String> response) {
    super(response);
  }
}
