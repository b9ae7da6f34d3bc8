package dev.assay;

import java.net.http.HttpResponse;

/** Thrown for status 429 after all retries: too many requests. Wait {@link #retryAfter()}. */
public final class RateLimitException extends AssayStatusException {
  private static final long serialVersionUID = 1L;

  RateLimitException(HttpResponse<String> response) {
    super(response);
  }
}
