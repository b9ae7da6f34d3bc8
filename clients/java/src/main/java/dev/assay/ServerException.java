package dev.assay;

import java.net.http.HttpResponse;

/** Thrown for status 5xx after all retries: the server failed. */
public final class ServerException extends AssayStatusException {
  private static final long serialVersionUID = 1L;

  ServerException(HttpResponse<String> response) {
    super(response);
  }
}
