package dev.assay;

import static java.util.Map.entry;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.NullNode;
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
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Runs the cases of clients/cases.json. ASSAY_CASES_URL and ASSAY_STARTER_URL come from {@code npm run clients}. */
class CasesTest {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String CASES_URL = System.getenv("ASSAY_CASES_URL");

  private static final Map<String, Class<? extends AssayException>> KINDS =
      Map.ofEntries(
          entry("bad_request", BadRequestException.class),
          entry("authentication", AuthenticationException.class),
          entry("permission", PermissionDeniedException.class),
          entry("unprocessable", UnprocessableEntityException.class),
          entry("rate_limit", RateLimitException.class),
          entry("server", ServerException.class),
          entry("not_found", AssayStatusException.class),
          entry("other", AssayStatusException.class),
          entry("timeout", AssayTimeoutException.class),
          entry("connection", AssayConnectionException.class));

  @TestFactory
  Stream<DynamicTest> everyCase() throws IOException {
    JsonNode cases = JSON.readTree(Path.of("..", "cases.json").toFile()).get("cases");
    assertTrue(cases.size() > 20);
    return StreamSupport.stream(cases.spliterator(), false)
        .map(one -> DynamicTest.dynamicTest(one.get("id").asText(), () -> play(one)));
  }

  private static void play(JsonNode one) throws Exception {
    JsonNode expect = one.get("expect");
    seen(one);
    long begin = System.nanoTime();
    if (expect.has("error")) {
      checkError(assertThrows(AssayException.class, () -> call(one)), expect.get("error"));
    } else {
      checkResponse(call(one), expect);
    }
    double seconds = (System.nanoTime() - begin) / 1e9;
    assertTrue(seconds >= expect.path("at_least_seconds").asDouble(0), seconds + " s");
    JsonNode told = seen(one);
    if (expect.has("attempts")) {
      assertEquals(expect.get("attempts").asInt(), told.get("attempts").asInt());
    }
    assertTrue(!expect.has("sent") || Matching.matches(told.get("sent"), expect.get("sent")), told.toString());
  }

  private static Object call(JsonNode one) throws IOException {
    Assay assay = client(one);
    JsonNode request = one.get("request");
    return switch (one.get("call").asText()) {
      case "run_tasks" -> assay.runTasks(JSON.treeToValue(request, RunTasksRequest.class));
      case "decide_extract" -> assay.decideExtract(JSON.treeToValue(request, RunTasksRequest.class));
      case "decide" -> assay.decide(JSON.treeToValue(request, DecideRequest.class));
      case "decisions" -> assay.decisions(JSON.treeToValue(request, DecisionsRequest.class));
      case "system_one" -> assay.systemOne(JSON.treeToValue(request, SystemOneRequest.class));
      case "rerank" -> assay.rerank(JSON.treeToValue(request, RerankRequest.class));
      case "extract" -> assay.extract(JSON.treeToValue(request, ExtractRequest.class));
      default -> throw new IllegalArgumentException(one.get("call").asText());
    };
  }

  private static Assay client(JsonNode one) {
    String url =
        switch (one.path("server").asText()) {
          case "starter" -> System.getenv("ASSAY_STARTER_URL");
          case "none" -> "http://127.0.0.1:9";
          default -> CASES_URL + "/cases/" + one.get("id").asText();
        };
    JsonNode settings = one.path("client");
    Assay.Builder builder = Assay.builder().baseUrl(url).apiKey(settings.path("api_key").asText("demo"));
    if (settings.has("timeout_seconds")) {
      builder.timeout(Duration.ofMillis(Math.round(settings.get("timeout_seconds").asDouble() * 1000)));
    }
    if (settings.has("max_retries")) {
      builder.maxRetries(settings.get("max_retries").asInt());
    }
    return builder.build();
  }

  private static void checkError(AssayException error, JsonNode expected) {
    assertSame(KINDS.get(expected.get("kind").asText()), error.getClass(), error.toString());
    assertTrue(error.getMessage().contains(expected.path("message").asText("")), error.getMessage());
    if (!(error instanceof AssayStatusException status)) {
      return;
    }
    Map<String, Optional<?>> found =
        Map.of(
            "status", Optional.of(status.status()),
            "type", status.type(),
            "code", status.code(),
            "param", status.param(),
            "request_id", status.requestId(),
            "retry_after", status.retryAfter().map(Duration::toSeconds));
    for (Map.Entry<String, Optional<?>> field : found.entrySet()) {
      if (expected.has(field.getKey())) {
        assertEquals(text(expected.get(field.getKey())), field.getValue().map(Object::toString), field.getKey());
      }
    }
    assertTrue(status.code().isEmpty() || status.requestId().isPresent());
  }

  private static Optional<String> text(JsonNode value) {
    return value instanceof NullNode || value instanceof MissingNode ? Optional.empty() : Optional.of(value.asText());
  }

  private static void checkResponse(Object response, JsonNode expect) {
    JsonNode json = JSON.valueToTree(response);
    assertTrue(!expect.has("response") || Matching.matches(json, expect.get("response")), json.toString());
    if (response instanceof DecisionsResponse || response instanceof SystemOneResponse || response instanceof RerankResponse) {
      return;
    }
    if (!expect.has("incomplete")) {
      assertSame(response, ensureComplete(response));
      return;
    }
    IncompleteException error = assertThrows(IncompleteException.class, () -> ensureComplete(response));
    assertEquals(List.of(expect.get("incomplete").asText(), response), List.of(error.finishReason(), error.response()));
  }

  private static Object ensureComplete(Object response) {
    if (response instanceof RunTasksResponse tasks) {
      return Complete.ensureComplete(tasks);
    }
    return response instanceof DecideResponse decision
        ? Complete.ensureComplete(decision)
        : Complete.ensureComplete((ExtractResponse) response);
  }

  private static JsonNode seen(JsonNode one) throws IOException, InterruptedException {
    HttpRequest request = HttpRequest.newBuilder(URI.create(CASES_URL + "/seen/" + one.get("id").asText())).build();
    return JSON.readTree(HttpClient.newHttpClient().send(request, BodyHandlers.ofString()).body());
  }
}
