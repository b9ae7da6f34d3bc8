using System;
using System.Net.Http;

namespace Assay.Client;

/// <summary>Settings of a client. A setting that is not set comes from the environment or has a default.</summary>
public sealed class AssayClientOptions
{
    private const string DefaultBaseUrl = "http://127.0.0.1:8080";

    /// <summary>Address of the server; default: the environment variable ASSAY_URL, else
    /// <c>http://127.0.0.1:8080</c>.</summary>
    public string? BaseUrl { get; set; }

    /// <summary>API key; default: the environment variable ASSAY_API_KEY.</summary>
    public string? ApiKey { get; set; }

    /// <summary>Timeout of each attempt; default two minutes.</summary>
    public TimeSpan Timeout { get; set; } = TimeSpan.FromMinutes(2);

    /// <summary>Largest number of retries after status 429 or 5xx; default 2.</summary>
    public int MaxRetries { get; set; } = 2;

    /// <summary>
    /// HttpClient that sends the requests, such as one of IHttpClientFactory; the caller must dispose of it. Its own
    /// Timeout (100 seconds by default) applies, too: make it infinite, or longer than <see cref="Timeout"/>. By
    /// default the client creates one.
    /// </summary>
    public HttpClient? HttpClient { get; set; }

    internal string Url()
    {
        string url = (FirstOf(BaseUrl, "ASSAY_URL") ?? DefaultBaseUrl).TrimEnd('/');
        return Uri.TryCreate(url, UriKind.Absolute, out Uri? parsed) && parsed.Scheme is "http" or "https"
            ? url
            : throw new AssayException($"{url} is no base URL. Pass one such as {DefaultBaseUrl}, or set ASSAY_URL.");
    }

    internal string Key() =>
        FirstOf(ApiKey, "ASSAY_API_KEY")
        ?? throw new AssayException("No API key: pass ApiKey, or set ASSAY_API_KEY. The server prints one at its first start.");

    private static string? FirstOf(string? given, string variable)
    {
        string? value = string.IsNullOrEmpty(given) ? Environment.GetEnvironmentVariable(variable) : given;
        return string.IsNullOrEmpty(value) ? null : value;
    }
}
