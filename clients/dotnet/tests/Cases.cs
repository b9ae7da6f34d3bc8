using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Net.Http;
using System.Text.Json;
using System.Threading.Tasks;

namespace Assay.Client.Tests;

/// <summary>Runs the cases of clients/cases.json. ASSAY_CASES (its path) and the URLs of the servers come from
/// <c>npm run clients</c>.</summary>
internal static class Cases
{
    private static readonly HttpClient Http = new();
    private static readonly string CasesUrl = Environment.GetEnvironmentVariable("ASSAY_CASES_URL")!;

    private static readonly Dictionary<string, Type> Kinds = new()
    {
        ["bad_request"] = typeof(BadRequestException),
        ["authentication"] = typeof(AuthenticationException),
        ["permission"] = typeof(PermissionDeniedException),
        ["unprocessable"] = typeof(UnprocessableEntityException),
        ["rate_limit"] = typeof(RateLimitException),
        ["server"] = typeof(ServerException),
        ["not_found"] = typeof(AssayStatusException),
        ["other"] = typeof(AssayStatusException),
        ["timeout"] = typeof(AssayTimeoutException),
        ["connection"] = typeof(AssayConnectionException),
    };

    internal static async Task<IEnumerable<(string Name, Func<Task> Test)>> AllAsync()
    {
        string text = await File.ReadAllTextAsync(Environment.GetEnvironmentVariable("ASSAY_CASES")!);
        return JsonDocument.Parse(text).RootElement.GetProperty("cases").EnumerateArray()
            .Select<JsonElement, (string, Func<Task>)>(one => (one.GetProperty("id").GetString()!, () => PlayAsync(one)));
    }

    private static async Task PlayAsync(JsonElement one)
    {
        JsonElement expect = one.GetProperty("expect");
        await SeenAsync(one);
        Stopwatch watch = Stopwatch.StartNew();
        if (expect.TryGetProperty("error", out JsonElement error))
        {
            Type kind = Kinds[error.GetProperty("kind").GetString()!];
            CheckError(await Check.Throws(kind, () => CallAsync(one)), error);
        }
        else
        {
            await CheckResponseAsync(await CallAsync(one), expect);
        }

        double atLeast = expect.TryGetProperty("at_least_seconds", out JsonElement seconds) ? seconds.GetDouble() : 0;
        Check.That(watch.Elapsed.TotalSeconds >= atLeast, $"only {watch.Elapsed}");
        JsonElement told = await SeenAsync(one);
        Check.That(
            !expect.TryGetProperty("attempts", out JsonElement attempts) || Matching.Matches(told.GetProperty("attempts"), attempts),
            $"attempts: {told}");
        Check.That(!expect.TryGetProperty("sent", out JsonElement sent) || Matching.Matches(told.GetProperty("sent"), sent), told.ToString());
    }

    private static async Task<object> CallAsync(JsonElement one)
    {
        using AssayClient assay = new(OptionsOf(one));
        JsonElement request = one.GetProperty("request");
        return one.GetProperty("call").GetString() switch
        {
            "run_tasks" => await assay.RunTasksAsync(request.Deserialize<RunTasksRequest>()!),
            "decide_extract" => await assay.DecideExtractAsync(request.Deserialize<RunTasksRequest>()!),
            "decide" => await assay.DecideAsync(request.Deserialize<DecideRequest>()!),
            "decisions" => await assay.DecisionsAsync(request.Deserialize<DecisionsRequest>()!),
            "system_one" => await assay.SystemOneAsync(request.Deserialize<SystemOneRequest>()!),
            "rerank" => await assay.RerankAsync(request.Deserialize<RerankRequest>()!),
            "extract" => await assay.ExtractAsync(request.Deserialize<ExtractRequest>()!),
            _ => throw new InvalidOperationException(one.ToString()),
        };
    }

    private static AssayClientOptions OptionsOf(JsonElement one)
    {
        string? server = one.TryGetProperty("server", out JsonElement named) ? named.GetString() : null;
        AssayClientOptions options = new()
        {
            ApiKey = "demo",
            BaseUrl = server switch
            {
                "starter" => Environment.GetEnvironmentVariable("ASSAY_STARTER_URL"),
                "none" => "http://127.0.0.1:9",
                _ => $"{CasesUrl}/cases/{one.GetProperty("id").GetString()}",
            },
        };
        if (!one.TryGetProperty("client", out JsonElement settings))
        {
            return options;
        }

        options.ApiKey = settings.TryGetProperty("api_key", out JsonElement key) ? key.GetString() : options.ApiKey;
        options.MaxRetries = settings.TryGetProperty("max_retries", out JsonElement retries) ? retries.GetInt32() : options.MaxRetries;
        options.Timeout = settings.TryGetProperty("timeout_seconds", out JsonElement limit)
            ? TimeSpan.FromSeconds(limit.GetDouble())
            : options.Timeout;
        return options;
    }

    private static void CheckError(Exception error, JsonElement expected)
    {
        Check.That(!expected.TryGetProperty("message", out JsonElement part) || error.Message.Contains(part.GetString()!), error.Message);
        if (error is not AssayStatusException status)
        {
            return;
        }

        Dictionary<string, object?> fields = new()
        {
            ["status"] = status.Status,
            ["type"] = status.Type,
            ["code"] = status.Code,
            ["param"] = status.Param,
            ["request_id"] = status.RequestId,
            ["retry_after"] = status.RetryAfter?.TotalSeconds,
        };
        foreach ((string name, object? found) in fields)
        {
            Check.That(
                !expected.TryGetProperty(name, out JsonElement value) || Matching.Matches(JsonSerializer.SerializeToElement(found), value),
                $"{name} is {found ?? "null"}");
        }

        Check.That(status.Code is null || !string.IsNullOrEmpty(status.RequestId), "no request id");
    }

    private static async Task CheckResponseAsync(object answer, JsonElement expect)
    {
        JsonElement json = JsonSerializer.SerializeToElement(answer);
        Check.That(!expect.TryGetProperty("response", out JsonElement wanted) || Matching.Matches(json, wanted), json.ToString());
        if (answer is not IResponse response)
        {
            return;
        }

        if (!expect.TryGetProperty("incomplete", out JsonElement reason))
        {
            Check.That(ReferenceEquals(response, response.EnsureComplete()), "another response came back");
            return;
        }

        Exception error = await Check.Throws(typeof(IncompleteException), () => Task.FromResult(response.EnsureComplete()));
        Check.Equal(reason.GetString(), ((IncompleteException)error).FinishReason, "finish reason");
        Check.That(ReferenceEquals(response, ((IncompleteException)error).Response), "another response came back");
    }

    private static async Task<JsonElement> SeenAsync(JsonElement one) =>
        JsonDocument.Parse(await Http.GetStringAsync($"{CasesUrl}/seen/{one.GetProperty("id").GetString()}")).RootElement;
}
