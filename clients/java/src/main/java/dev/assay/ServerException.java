package dev.assay;

import java.net.http.HttpResponse;

/** 5xx: the server failed, also after the retries. */
public final class ServerException extends AssayStatusException {
  private static final long serialVersionUID = 1L;

  ServerException(HttpResponse<String> response) {
    super(response);
  }
}
