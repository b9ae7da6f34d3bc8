package dev.assay;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.assay.model.DecideRequest;
import dev.assay.model.DecideResponse;
import dev.assay.model.DecisionsRequest;
import dev.assay.model.DecisionsResponse;
import dev.assay.model.ExtractRequest;
import dev.assay.model.ExtractResponse;
import dev.assay.model.RerankRequest;
import dev.assay.model.RerankResponse;
import dev.assay.model.RunTasksRequest;
import dev.assay.model.RunTasksResponse;
import dev.assay.model.SystemOneRequest;
import dev.assay.model.SystemOneResponse;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Client of the decision service. Safe to share between threads. Calls throw an {@link AssayException}. */
public final class Assay {
  private static final ObjectMapper JSON =
      JsonMapper.builder()
          .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
          // Unset fields are omitted, so that the server's defaults apply; nulls inside a schema are sent.
          .defaultPropertyInclusion(JsonInclude.Value.construct(JsonInclude.Include.NON_NULL, JsonInclude.Include.ALWAYS))
          .build();

  private final HttpClient http;
  private final String baseUrl;
  private final String apiKey;
  private final Duration timeout;
  private final int maxRetries;

  private Assay(Builder builder, String apiKey, String baseUrl) {
    this.apiKey = apiKey;
    this.baseUrl = baseUrl;
    timeout = builder.timeout;
    maxRetries = builder.maxRetries;
    http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(timeout).build();
  }

  /** Creates a client with all settings from the environment; throws if there is no ASSAY_API_KEY. */
  public static Assay fromEnvironment() {
    return builder().build();
  }

  public static Builder builder() {
    return new Builder();
  }

  /** Answers a list of tasks about one shared context. */
  public RunTasksResponse runTasks(RunTasksRequest request) {
    return post("/v1/tasks", request, RunTasksResponse.class);
  }

  /** Does the same as {@link #runTasks}. This is the operation's original name and path. */
  public RunTasksResponse decideExtract(RunTasksRequest request) {
    return post("/v1/decide-extract", request, RunTasksResponse.class);
  }

  /** Answers one question, with one of the options or in the model's own words. */
  public DecideResponse decide(DecideRequest request) {
    return post("/decide", request, DecideResponse.class);
  }

  /** Extracts one object with fields from a text. */
  public ExtractResponse extract(ExtractRequest request) {
    return post("/extract", request, ExtractResponse.class);
  }

  /** Answers questions with the probability of every option, in the format of OpenAI's Decisions API. */
  public DecisionsResponse decisions(DecisionsRequest request) {
    return post("/v1/decisions", request, DecisionsResponse.class);
  }

  /** Answers named questions with the probability of every option, in the format of System One. */
  public SystemOneResponse systemOne(SystemOneRequest request) {
    return post("/v1/systemone", request, SystemOneResponse.class);
  }

  /** Ranks documents by the probability that each is relevant to a query. */
  public RerankResponse rerank(RerankRequest request) {
    return post("/v1/rerank", request, RerankResponse.class);
  }

  private <R> R post(String path, Object body, Class<R> answer) {
    HttpRequest request = request(path, body);
    for (int attempt = 0; ; attempt++) {
      HttpResponse<String> response = send(request);
      if (response.statusCode() / 100 == 2) {
        return parse(response, answer);
      }
      Optional<Duration> wait = Retry.waitBefore(response, attempt);
      if (wait.isEmpty() || attempt >= maxRetries) {
        throw AssayStatusException.of(response);
      }
      sleep(wait.get());
    }
  }

  private HttpRequest request(String path, Object body) {
    try {
      return HttpRequest.newBuilder(URI.create(baseUrl + path))
          .header("authorization", "Bearer " + apiKey)
          .header("content-type", "application/json")
          .header("user-agent", "assay-java/" + Contract.VERSION)
          .POST(BodyPublishers.ofString(JSON.writeValueAsString(body)))
          .build();
    } catch (JsonProcessingException error) {
      throw new AssayException("The request cannot be written as JSON: " + error.getOriginalMessage(), error);
    }
  }

  /** Applies the timeout to the whole attempt; that of HttpClient ends when the headers have arrived. */
  private HttpResponse<String> send(HttpRequest request) {
    CompletableFuture<HttpResponse<String>> answer = http.sendAsync(request, BodyHandlers.ofString());
    try {
      return answer.get(timeout.toMillis(), TimeUnit.MILLISECONDS);
    } catch (TimeoutException error) {
      answer.cancel(true);
      throw tooLate(error);
    } catch (InterruptedException error) {
      answer.cancel(true);
      throw interrupted(error);
    } catch (ExecutionException error) {
      Throwable cause = error.getCause();
      if (cause instanceof java.net.http.HttpTimeoutException) {
        throw tooLate(cause);
      }
      if (cause instanceof IOException) {
        throw new AssayConnectionException("No answer from " + baseUrl + ": " + cause + ". Does the server run?", cause);
      }
      throw new AssayException("The request cannot be sent: " + cause, cause);
    }
  }

  private AssayTimeoutException tooLate(Throwable cause) {
    return new AssayTimeoutException("No answer from " + baseUrl + " in time. Raise timeout, or send less at once.", cause);
  }

  private static AssayException interrupted(InterruptedException error) {
    Thread.currentThread().interrupt();
    return new AssayException("The thread was interrupted while it waited for an answer.", error);
  }

  private <R> R parse(HttpResponse<String> response, Class<R> answer) {
    try {
      JsonNode found = JSON.readTree(response.body());
      if (isAnswer(found)) {
        return JSON.treeToValue(found, answer);
      }
      throw foreign("it lacks the members that every answer has", null);
    } catch (JsonProcessingException error) {
      throw foreign(error.getOriginalMessage(), error);
    }
  }

  /** Tells whether a body has the members of every answer; Jackson would set missing ones to null. */
  private static boolean isAnswer(JsonNode found) {
    boolean hasAnswers = found.path("answers").isContainerNode() || found.path("results").isArray();
    return hasAnswers && found.path("usage").isObject() && found.path("model").isTextual() || hasResults(found);
  }

  private static boolean hasResults(JsonNode found) {
    return found.path("id").isTextual()
        && found.at("/choices/0/finish_reason").isTextual()
        && (found.hasNonNull("results") || found.hasNonNull("result"));
  }

  private AssayConnectionException foreign(String why, Throwable cause) {
    String message = "What came from " + baseUrl + " is not Assay's: " + why + ". Is baseUrl right?";
    return new AssayConnectionException(message, cause);
  }

  private static void sleep(Duration wait) {
    try {
      Thread.sleep(wait.toMillis());
    } catch (InterruptedException error) {
      throw interrupted(error);
    }
  }

  /** Settings of a client. A setting that is not set comes from the environment or has a default. */
  public static final class Builder {
    private static final String DEFAULT_BASE_URL = "http://127.0.0.1:8080";

    private String baseUrl;
    private String apiKey;
    private Duration timeout = Duration.ofMinutes(2);
    private int maxRetries = 2;

    private Builder() {}

    /** Address of the server; default: the environment variable ASSAY_URL, else {@code http://127.0.0.1:8080}. */
    public Builder baseUrl(String url) {
      baseUrl = url;
      return this;
    }

    /** API key; default: the environment variable ASSAY_API_KEY. */
    public Builder apiKey(String key) {
      apiKey = key;
      return this;
    }

    /** Timeout of each attempt; default two minutes. */
    public Builder timeout(Duration limit) {
      timeout = limit;
      return this;
    }

    /** Largest number of retries after status 429 or 5xx; default 2. */
    public Builder maxRetries(int count) {
      maxRetries = count;
      return this;
    }

    /** Creates the client; throws an {@link AssayException} if there is no API key or the base URL is invalid. */
    public Assay build() {
      String key = firstOf(apiKey, System.getenv("ASSAY_API_KEY"), "");
      if (key.isEmpty()) {
        throw new AssayException("No API key: pass apiKey, or set ASSAY_API_KEY. The server prints one at its first start.");
      }
      String url = firstOf(baseUrl, System.getenv("ASSAY_URL"), DEFAULT_BASE_URL);
      if (!url.matches("https?://.+")) {
        throw new AssayException(url + " is no base URL. Pass one such as " + DEFAULT_BASE_URL + ", or set ASSAY_URL.");
      }
      return new Assay(this, key, url.replaceAll("/+$", ""));
    }

    private static String firstOf(String given, String environment, String otherwise) {
      if (given != null) {
        return given;
      }
      return environment != null && !environment.isEmpty() ? environment : otherwise;
    }
  }
}
