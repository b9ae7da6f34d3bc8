package dev.assay;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Optional;

/**
 * Thrown for an error response of the server. Branch on {@link #code()}; the message is for logs, not for end users.
 */
public class AssayStatusException extends AssayException {
  private static final long serialVersionUID = 1L;
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int LONGEST_QUOTE = 200;

  private final int status;
  private final String type;
  private final String code;
  private final String param;
  private final String requestId;
  private final Duration retryAfter;

  AssayStatusException(HttpResponse<String> response) {
    this(response, detailsOf(response.body()));
  }

  private AssayStatusException(HttpResponse<String> response, JsonNode details) {
    super(messageOf(response, details));
    status = response.statusCode();
    type = text(details, "type");
    code = text(details, "code");
    param = text(details, "param");
    requestId = response.headers().firstValue("x-request-id").orElse(null);
    retryAfter = Retry.retryAfter(response).orElse(null);
  }

  /** Returns the exception for a response that is not a success. */
  static AssayStatusException of(HttpResponse<String> response) {
    return switch (response.statusCode()) {
      case 400 -> new BadRequestException(response);
      case 401 -> new AuthenticationException(response);
      case 403 -> new PermissionDeniedException(response);
      case 422 -> new UnprocessableEntityException(response);
      case 429 -> new RateLimitException(response);
      default -> response.statusCode() >= 500 ? new ServerException(response) : new AssayStatusException(response);
    };
  }

  /** HTTP status. */
  public int status() {
    return status;
  }

  /** Type of the error, such as {@code invalid_request_error}; empty if a proxy answered and not Assay. */
  public Optional<String> type() {
    return Optional.ofNullable(type);
  }

  /** Code of the error, such as {@code invalid_value}; empty if a proxy answered and not Assay. */
  public Optional<String> code() {
    return Optional.ofNullable(code);
  }

  /** Path of the invalid field, such as {@code tasks[2].options[0]}. */
  public Optional<String> param() {
    return Optional.ofNullable(param);
  }

  /** Identifies the request in the server's log. */
  public Optional<String> requestId() {
    return Optional.ofNullable(requestId);
  }

  /** Time to wait before a retry, if the server stated it. */
  public Optional<Duration> retryAfter() {
    return Optional.ofNullable(retryAfter);
  }

  private static String messageOf(HttpResponse<String> response, JsonNode details) {
    String said = text(details, "message");
    String body = response.body();
    String quote = said != null ? said : body.substring(0, Math.min(LONGEST_QUOTE, body.length()));
    String id = response.headers().firstValue("x-request-id").orElse("unknown");
    return response.statusCode() + " " + details.path("code").asText("") + ": " + quote + " (request " + id + ")";
  }

  private static JsonNode detailsOf(String body) {
    try {
      return JSON.readTree(body).path("error");
    } catch (JsonProcessingException notJson) {
      return JSON.missingNode();
    }
  }

  private static String text(JsonNode details, String name) {
    return details.path(name).isTextual() ? details.path(name).asText() : null;
  }
}
