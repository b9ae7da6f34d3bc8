using System;
using System.Text.Json;

namespace Assay.Client;

/// <summary>An error response of the server. Branch on <see cref="Code"/>; the message is for logs, not for end
/// users.</summary>
public class AssayStatusException : AssayException
{
    private const int LongestQuote = 200;

    internal AssayStatusException(Answer answer)
        : this(answer, DetailsOf(answer.Body))
    {
    }

    private AssayStatusException(Answer answer, ErrorDetails? details)
        : base(MessageOf(answer, details))
    {
        Status = answer.Status;
        Type = details?.Type;
        Code = details?.Code;
        Param = details?.Param;
        RequestId = answer.RequestId;
        RetryAfter = answer.RetryAfter;
    }

    /// <summary>HTTP status.</summary>
    public int Status { get; }

    /// <summary>Type of the error, such as <c>invalid_request_error</c>; null if a proxy answered and not
    /// Assay.</summary>
    public string? Type { get; }

    /// <summary>Code of the error, such as <c>invalid_value</c>; null if a proxy answered and not Assay.</summary>
    public string? Code { get; }

    /// <summary>Path of the invalid field, such as <c>tasks[2].options[0]</c>.</summary>
    public string? Param { get; }

    /// <summary>Identifies the request in the server's log.</summary>
    public string? RequestId { get; }

    /// <summary>Time to wait before a retry, if the server stated it.</summary>
    public TimeSpan? RetryAfter { get; }

    /// <summary>Returns the exception for a response that is not a success.</summary>
    internal static AssayStatusException Of(Answer answer) => answer.Status switch
    {
        400 => new BadRequestException(answer),
        401 => new AuthenticationException(answer),
        403 => new PermissionDeniedException(answer),
        422 => new UnprocessableEntityException(answer),
        429 => new RateLimitException(answer),
        >= 500 => new ServerException(answer),
        _ => new AssayStatusException(answer),
    };

    private static string MessageOf(Answer answer, ErrorDetails? details)
    {
        string quote = details?.Message ?? answer.Body[..Math.Min(LongestQuote, answer.Body.Length)];
        return $"{answer.Status} {details?.Code}: {quote} (request {answer.RequestId ?? "unknown"})";
    }

    private static ErrorDetails? DetailsOf(string body)
    {
        try
        {
            return JsonSerializer.Deserialize<ErrorBody>(body)?.Error;
        }
        catch (JsonException)
        {
            return null;
        }
    }
}
