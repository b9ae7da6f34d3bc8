using System;

namespace Assay.Client;

/// <summary>When a request is sent again.</summary>
internal static class Retry
{
    /// <summary>A server that asks for more gets no second try: the caller decides.</summary>
    private static readonly TimeSpan LongestWait = TimeSpan.FromSeconds(60);

    private const double FirstBackoff = 0.5;
    private const double LongestBackoff = 8;

    /// <summary>
    /// How long to wait before sending again, or null for no second try: 429 after <c>Retry-After</c>, 5xx with a
    /// back-off that
    /// doubles, other statuses never. <paramref name="attempt"/> counts from 0.
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
