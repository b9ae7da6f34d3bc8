using System;

namespace Assay.Client;

/// <summary>Decides whether and when a request is sent again.</summary>
internal static class Retry
{
    /// <summary>Longest wait before a retry. If the server asks for a longer one, the call fails and the caller
    /// decides.</summary>
    private static readonly TimeSpan LongestWait = TimeSpan.FromSeconds(60);

    private const double FirstBackoff = 0.5;
    private const double LongestBackoff = 8;

    /// <summary>
    /// Returns the time to wait before a retry, or null for no retry: the time in <c>Retry-After</c> after 429, an
    /// exponential backoff after 5xx, and no retry after any other status. <paramref name="attempt"/> counts from 0.
    /// </summary>
    internal static TimeSpan? WaitBefore(int status, TimeSpan? named, int attempt)
    {
        if (status != 429 && status < 500)
        {
            return null;
        }

        if (named is not null)
        {
            return named <= LongestWait ? named : null;
        }

        double seconds = Math.Min(LongestBackoff, FirstBackoff * Math.Pow(2, attempt));
        return TimeSpan.FromSeconds(seconds * (0.75 + (0.25 * Random.Shared.NextDouble())));
    }
}
