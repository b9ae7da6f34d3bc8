namespace Assay.Client;

/// <summary>400: the request is malformed.</summary>
public sealed class BadRequestException : AssayStatusException
{
    internal BadRequestException(Answer answer)
        : base(answer)
    {
    }
}

/// <summary>401: no API key, or an unknown one.</summary>
public sealed class AuthenticationException : AssayStatusException
{
    internal AuthenticationException(Answer answer)
        : base(answer)
    {
    }
}

/// <summary>403: the key may not use this model.</summary>
public sealed class PermissionDeniedException : AssayStatusException
{
    internal PermissionDeniedException(Answer answer)
        : base(answer)
    {
    }
}

/// <summary>422: a value is invalid.</summary>
public sealed class UnprocessableEntityException : AssayStatusException
{
    internal UnprocessableEntityException(Answer answer)
        : base(answer)
    {
    }
}

/// <summary>429: too many requests, also after the retries; wait
/// <see cref="AssayStatusException.RetryAfter"/>.</summary>
public sealed class RateLimitException : AssayStatusException
{
    internal RateLimitException(Answer answer)
        : base(answer)
    {
    }
}

/// <summary>5xx: the server failed, also after the retries.</summary>
public sealed class ServerException : AssayStatusException
{
    internal ServerException(Answer answer)
        : base(answer)
    {
    }
}
