using System;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Text;
using System.Text.Encodings.Web;
using System.Text.Json;
using System.Threading;
using System.Threading.Tasks;

namespace Assay.Client;

/// <summary>Client of the decision service. Safe to share between threads. Calls throw an
/// <see cref="AssayException"/>.</summary>
public sealed class AssayClient : IDisposable
{
    // Text is sent as UTF-8: escapes would double its size in many languages, and a body needs no HTML escapes.
    private static readonly JsonSerializerOptions Json = new() { Encoder = JavaScriptEncoder.UnsafeRelaxedJsonEscaping };

    private readonly HttpClient http;
    private readonly bool ownsHttp;
    private readonly string baseUrl;
    private readonly AuthenticationHeaderValue authorization;
    private readonly TimeSpan timeout;
    private readonly int maxRetries;

    /// <summary>Creates a client with settings from <paramref name="options"/> and the environment; throws if there is
    /// no API key.</summary>
    public AssayClient(AssayClientOptions? options = null)
    {
        options ??= new AssayClientOptions();
        baseUrl = options.Url();
        authorization = new AuthenticationHeaderValue("Bearer", options.Key());
        timeout = options.Timeout;
        maxRetries = options.MaxRetries;
        ownsHttp = options.HttpClient is null;
        // This class applies the timeout itself, to distinguish it from a cancellation by the caller.
        http = options.HttpClient ?? new HttpClient { Timeout = System.Threading.Timeout.InfiniteTimeSpan };
    }

    /// <summary>Answers a list of tasks about one shared context.</summary>
    public Task<RunTasksResponse> RunTasksAsync(RunTasksRequest request, CancellationToken cancellationToken = default) =>
        PostAsync<RunTasksRequest, RunTasksResponse>("/v1/tasks", request, cancellationToken);

    /// <summary>Does the same as <see cref="RunTasksAsync"/>. This is the operation's original name and path.</summary>
    public Task<RunTasksResponse> DecideExtractAsync(RunTasksRequest request, CancellationToken cancellationToken = default) =>
        PostAsync<RunTasksRequest, RunTasksResponse>("/v1/decide-extract", request, cancellationToken);

    /// <summary>Answers one question, with one of the options or in the model's own words.</summary>
    public Task<DecideResponse> DecideAsync(DecideRequest request, CancellationToken cancellationToken = default) =>
        PostAsync<DecideRequest, DecideResponse>("/decide", request, cancellationToken);

    /// <summary>Extracts one object with fields from a text.</summary>
    public Task<ExtractResponse> ExtractAsync(ExtractRequest request, CancellationToken cancellationToken = default) =>
        PostAsync<ExtractRequest, ExtractResponse>("/extract", request, cancellationToken);

    /// <summary>Answers questions with the probability of every option, in the format of OpenAI's Decisions
    /// API.</summary>
    public Task<DecisionsResponse> DecisionsAsync(DecisionsRequest request, CancellationToken cancellationToken = default) =>
        PostAsync<DecisionsRequest, DecisionsResponse>("/v1/decisions", request, cancellationToken);

    /// <summary>Answers named questions with the probability of every option, in the format of System One.</summary>
    public Task<SystemOneResponse> SystemOneAsync(SystemOneRequest request, CancellationToken cancellationToken = default) =>
        PostAsync<SystemOneRequest, SystemOneResponse>("/v1/systemone", request, cancellationToken);

    /// <summary>Ranks documents by the probability that each is relevant to a query.</summary>
    public Task<RerankResponse> RerankAsync(RerankRequest request, CancellationToken cancellationToken = default) =>
        PostAsync<RerankRequest, RerankResponse>("/v1/rerank", request, cancellationToken);

    /// <summary>Closes the connections, unless the caller passed an HttpClient.</summary>
    public void Dispose()
    {
        if (ownsHttp)
        {
            http.Dispose();
        }
    }

    private async Task<TResponse> PostAsync<TRequest, TResponse>(string path, TRequest request, CancellationToken cancellationToken)
    {
        string body = JsonSerializer.Serialize(request, Json);
        for (int attempt = 0; ; attempt++)
        {
            Answer answer = await SendAsync(path, body, cancellationToken).ConfigureAwait(false);
            if (answer.Status / 100 == 2)
            {
                return Parse<TResponse>(answer);
            }

            TimeSpan? wait = Retry.WaitBefore(answer.Status, answer.RetryAfter, attempt);
            if (wait is null || attempt >= maxRetries)
            {
                throw AssayStatusException.Of(answer);
            }

            await Task.Delay(wait.Value, cancellationToken).ConfigureAwait(false);
        }
    }

    private async Task<Answer> SendAsync(string path, string body, CancellationToken cancellationToken)
    {
        using HttpRequestMessage message = new(HttpMethod.Post, baseUrl + path);
        message.Headers.Authorization = authorization;
        message.Headers.UserAgent.Add(new ProductInfoHeaderValue("assay-dotnet", Contract.Version));
        message.Content = new StringContent(body, Encoding.UTF8, "application/json");
        using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        limit.CancelAfter(timeout);
        try
        {
            using HttpResponseMessage response = await http.SendAsync(message, limit.Token).ConfigureAwait(false);
            return new Answer(response, await response.Content.ReadAsStringAsync(limit.Token).ConfigureAwait(false));
        }
        catch (OperationCanceledException error) when (limit.IsCancellationRequested && !cancellationToken.IsCancellationRequested)
        {
            throw new AssayTimeoutException($"No answer within {timeout.TotalSeconds:0.###} seconds.", error);
        }
        catch (OperationCanceledException error) when (error.InnerException is TimeoutException)
        {
            throw new AssayTimeoutException($"The HttpClient has a shorter time-out than this client: {error.Message}", error);
        }
        catch (HttpRequestException error)
        {
            throw new AssayConnectionException($"No answer from {baseUrl}: {error.Message}. Does the server run?", error);
        }
    }

    private TResponse Parse<TResponse>(Answer answer)
    {
        try
        {
            return JsonSerializer.Deserialize<TResponse>(answer.Body, Json) ?? throw new JsonException("null");
        }
        catch (JsonException error)
        {
            throw new AssayConnectionException($"What came from {baseUrl} is not Assay's: {error.Message} Is BaseUrl right?", error);
        }
    }
}
