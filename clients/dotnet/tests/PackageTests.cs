using System;
using System.Collections.Generic;
using System.IO;
using System.Net;
using System.Net.Http;
using System.Security.Cryptography;
using System.Text;
using System.Text.Json;
using System.Threading;
using System.Threading.Tasks;

namespace Assay.Client.Tests;

/// <summary>Tests what cases.json does not cover: how users see the package.</summary>
internal static class PackageTests
{
    internal static IEnumerable<(string Name, Func<Task> Test)> All()
    {
        yield return ("tells what it was made from", TellsWhatItWasMadeFrom);
        yield return ("tasks match on their class", TasksMatch);
        yield return ("a message takes text or parts", MessageTakesTextOrParts);
        yield return ("an unknown member is sent, a null inside a schema too", UnknownMembersAreSent);
        yield return ("settings come from the environment", SettingsFromEnvironment);
        yield return ("the caller's own cancelling is no time-out", Cancelling);
        yield return ("a time-out says whose it is", TimeOuts);
    }

    private static Task TellsWhatItWasMadeFrom()
    {
        byte[] contract = File.ReadAllBytes(Environment.GetEnvironmentVariable("ASSAY_CONTRACT")!);
        Check.Equal(Convert.ToHexString(SHA256.HashData(contract)).ToLowerInvariant(), Contract.Fingerprint, "fingerprint");
        return Task.CompletedTask;
    }

    private static Task TasksMatch()
    {
        AssayTask task = new ExtractTask { Name = "a", Instruction = "!" };
        string text = task switch
        {
            DecideTask { Question: var question } => question,
            ExtractTask { Instruction: var instruction } => instruction,
            _ => throw new InvalidOperationException(),
        };
        Check.Equal("!", text, "instruction");
        Check.Equal("extract", JsonSerializer.SerializeToElement(task).GetProperty("type").GetString(), "type");
        return Task.CompletedTask;
    }

    private static Task MessageTakesTextOrParts()
    {
        Message text = new() { Role = "user", Content = "Hello" };
        Message parts = new() { Role = "user", Content = new ContentPart[] { new TextPart { Text = "Hello" } } };
        Check.Equal("{\"role\":\"user\",\"content\":\"Hello\"}", JsonSerializer.Serialize(text), "text");
        string json = "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Hello\"}]}";
        Check.Equal(json, JsonSerializer.Serialize(parts), "parts");
        Check.Equal(json, JsonSerializer.Serialize(JsonSerializer.Deserialize<Message>(json)), "parts, read");
        return Task.CompletedTask;
    }

    private static Task UnknownMembersAreSent()
    {
        ExtractRequest request = new()
        {
            Model = "m",
            Instruction = "i",
            Schema = new { a = new { @const = (string?)null } },
            Extra = new Dictionary<string, object?> { ["new_field"] = true },
        };
        string json = "{\"model\":\"m\",\"instruction\":\"i\",\"schema\":{\"a\":{\"const\":null}},\"new_field\":true}";
        Check.Equal(json, JsonSerializer.Serialize(request), "request");
        return Task.CompletedTask;
    }

    private static async Task SettingsFromEnvironment()
    {
        Environment.SetEnvironmentVariable("ASSAY_API_KEY", null);
        await Check.Throws(typeof(AssayException), () => Task.FromResult(new AssayClient()));
        Environment.SetEnvironmentVariable("ASSAY_API_KEY", "from-environment");
        Environment.SetEnvironmentVariable("ASSAY_URL", "http://127.0.0.1:1/base/");
        Recording recording = new();
        using AssayClient assay = new(new AssayClientOptions { HttpClient = new HttpClient(recording) });
        await assay.DecideAsync(new DecideRequest { Model = "m", Question = "?" });
        Check.Equal("http://127.0.0.1:1/base/decide", recording.Seen!.RequestUri!.ToString(), "URL");
        Check.Equal("Bearer from-environment", recording.Seen.Headers.Authorization!.ToString(), "key");
        Check.Equal($"assay-dotnet/{Contract.Version}", recording.Seen.Headers.UserAgent.ToString(), "user agent");
        await Check.Throws(typeof(AssayException), () => Task.FromResult(new AssayClient(new AssayClientOptions { BaseUrl = "localhost:8080" })));
    }

    private static async Task Cancelling()
    {
        using AssayClient assay = new(new AssayClientOptions { ApiKey = "demo", HttpClient = new HttpClient(new Recording { Waits = true }) });
        using CancellationTokenSource leave = new(TimeSpan.FromMilliseconds(50));
        await Check.Throws(
            typeof(TaskCanceledException),
            () => assay.DecideAsync(new DecideRequest { Model = "m", Question = "?" }, leave.Token));
    }

    private static async Task TimeOuts()
    {
        TimeSpan brief = TimeSpan.FromMilliseconds(50);
        (TimeSpan Http, TimeSpan Assay, string Says)[] cases =
        {
            (Timeout.InfiniteTimeSpan, brief, "within 0.05 seconds."),
            (brief, TimeSpan.FromMinutes(2), "the configured HttpClient.Timeout of 0.05 seconds"),
        };
        foreach ((TimeSpan ofHttp, TimeSpan ofAssay, string says) in cases)
        {
            HttpClient http = new(new Recording { Waits = true }) { Timeout = ofHttp };
            using AssayClient assay = new(new AssayClientOptions { ApiKey = "demo", HttpClient = http, Timeout = ofAssay });
            Exception error = await Check.Throws(
                typeof(AssayTimeoutException),
                () => assay.DecideAsync(new DecideRequest { Model = "m", Question = "?" }));
            Check.That(error.Message.Contains(says), error.Message);
        }
    }

    /// <summary>Answers requests without a network, and keeps them for assertions.</summary>
    private sealed class Recording : HttpMessageHandler
    {
        private const string Answer =
            "{\"id\":\"1\",\"model\":\"m\",\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"{}\"},\"finish_reason\":\"stop\"}],"
            + "\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1,\"total_tokens\":2},"
            + "\"result\":{\"value\":\"a\"},\"decision\":{\"value\":\"a\"},\"value\":\"a\"}";

        internal HttpRequestMessage? Seen { get; private set; }

        internal bool Waits { get; init; }

        protected override async Task<HttpResponseMessage> SendAsync(HttpRequestMessage request, CancellationToken cancellationToken)
        {
            Seen = request;
            await Task.Delay(Waits ? Timeout.Infinite : 0, cancellationToken);
            return new HttpResponseMessage(HttpStatusCode.OK) { Content = new StringContent(Answer, Encoding.UTF8, "application/json") };
        }
    }
}
