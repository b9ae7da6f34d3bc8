using System.Collections.Generic;
using System.Linq;

namespace Assay.Client;

/// <summary>Declares the members that every response of the decision service has.</summary>
public interface IResponse
{
    /// <summary>Request identifier, for logs and support.</summary>
    string Id { get; }

    /// <summary>A list of one choice, with the reason why the answer ended.</summary>
    IList<Choice> Choices { get; }
}

public sealed partial class RunTasksResponse : IResponse
{
}

public sealed partial class DecideResponse : IResponse
{
}

public sealed partial class ExtractResponse : IResponse
{
}

/// <summary>Checks that an answer is complete.</summary>
public static class Complete
{
    private static readonly Dictionary<string, string> Why = new()
    {
        ["length"] = "The output limit was reached: raise max_output_tokens and send the request again.",
        ["content_filter"] = "The answer was filtered: sending the same input again does not help.",
    };

    /// <summary>Returns the response; throws <see cref="IncompleteException"/> if its finish reason says that
    /// the answer was cut.</summary>
    public static TResponse EnsureComplete<TResponse>(this TResponse response)
        where TResponse : IResponse
    {
        string reason = response.Choices.FirstOrDefault()?.FinishReason ?? "stop";
        if (Why.TryGetValue(reason, out string? why))
        {
            throw new IncompleteException(reason, $"{why} (request {response.Id})", response);
        }

        return response;
    }
}

/// <summary>Thrown for an answer that was cut.</summary>
public sealed class IncompleteException : AssayException
{
    internal IncompleteException(string finishReason, string message, IResponse response)
        : base(message)
    {
        FinishReason = finishReason;
        Response = response;
    }

    /// <summary><c>length</c> or <c>content_filter</c>.</summary>
    public string FinishReason { get; }

    /// <summary>The response, with the part of the answer that was generated.</summary>
    public IResponse Response { get; }
}
