package dev.assay;

import java.net.http.HttpResponse;

/** 429: too many requests, also after the retries; wait {@link #retryAfter()}. */
public final class RateLimitException extends AssayStatusException {
  private static final long serialVersionUID = 1L;

  RateLimitException(HttpResponse<String> response) {
    super(response);
  }
}
