using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Net.Http;

namespace Assay.Client;

/// <summary>Holds the complete response to one attempt.</summary>
internal sealed class Answer
{
    internal Answer(HttpResponseMessage response, string body)
    {
        Body = body;
        Status = (int)response.StatusCode;
        RequestId = Header(response, "x-request-id");
        RetryAfter = Seconds(Header(response, "retry-after"));
    }

    internal string Body { get; }

    internal int Status { get; }

    internal string? RequestId { get; }

    /// <summary>The time in <c>Retry-After</c>; null if there is none, or if it is not a number.</summary>
    internal TimeSpan? RetryAfter { get; }

    private static string? Header(HttpResponseMessage response, string name) =>
        response.Headers.TryGetValues(name, out IEnumerable<string>? values) ? values.First() : null;

    private static TimeSpan? Seconds(string? text) =>
        double.TryParse(text, NumberStyles.Float, CultureInfo.InvariantCulture, out double seconds)
            ? TimeSpan.FromSeconds(Math.Clamp(seconds, 0, int.MaxValue))
            : null;
}
