package dev.assay;

import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;

/** Decides when a request is sent again. */
final class Retry {
  /** Longest wait before a retry. If the server asks for a longer one, the call fails and the caller decides. */
  private static final Duration LONGEST_WAIT = Duration.ofSeconds(60);

  private static final double FIRST_BACKOFF = 0.5;
  private static final double LONGEST_BACKOFF = 8.0;

  private Retry() {}

  /**
   * Returns the time to wait before a retry, or empty for no retry: the time in {@code Retry-After} after 429, an
   * exponential backoff after 5xx, and no retry after any other status. {@code attempt} counts from 0.
   */
  static Optional<Duration> waitBefore(HttpResponse<?> response, int attempt) {
    int status = response.statusCode();
    if (status != 429 && status < 500) {
      return Optional.empty();
    }
    Optional<Duration> named = retryAfter(response);
    if (named.isPresent()) {
      return named.filter(wait -> wait.compareTo(LONGEST_WAIT) <= 0);
    }
    double seconds = Math.min(LONGEST_BACKOFF, FIRST_BACKOFF * Math.pow(2, attempt));
    return Optional.of(seconds(seconds * ThreadLocalRandom.current().nextDouble(0.75, 1.0)));
  }

  /** Returns the time in {@code Retry-After}; empty if there is none, or if it is not a number. */
  static Optional<Duration> retryAfter(HttpResponse<?> response) {
    try {
      return response.headers().firstValue("retry-after").map(text -> seconds(Math.max(0, Double.parseDouble(text))));
    } catch (NumberFormatException notSeconds) {
      return Optional.empty();
    }
  }

  private static Duration seconds(double count) {
    return Duration.ofMillis(Math.round(count * 1000));
  }
}
