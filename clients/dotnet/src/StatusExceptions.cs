namespace Assay.Client;

/// <summary>Thrown for status 400: the request is malformed.</summary>
public sealed class BadRequestException : AssayStatusException
{
    internal BadRequestException(Answer answer)
        : base(answer)
    {
    }
}

/// <summary>Thrown for status 401: the API key is missing or unknown.</summary>
public sealed class AuthenticationException : AssayStatusException
{
    internal AuthenticationException(Answer answer)
        : base(answer)
    {
    }
}

/// <summary>Thrown for status 403: the key may not use this model.</summary>
public sealed class PermissionDeniedException : AssayStatusException
{
    internal PermissionDeniedException(Answer answer)
        : base(answer)
    {
    }
}

/// <summary>Thrown for status 422: a value is invalid.</summary>
public sealed class UnprocessableEntityException : AssayStatusException
{
    internal UnprocessableEntityException(Answer answer)
        : base(answer)
    {
    }
}

/// <summary>Thrown for status 429 after all retries: too many requests. Wait
/// <see cref="AssayStatusException.RetryAfter"/>.</summary>
public sealed class RateLimitException : AssayStatusException
{
    internal RateLimitException(Answer answer)
        : base(answer)
    {
    }
}

/// <summary>Thrown for status 5xx after all retries: the server failed.</summary>
public sealed class ServerException : AssayStatusException
{
    internal ServerException(Answer answer)
        : base(answer)
    {
    }
}
