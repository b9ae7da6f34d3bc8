using System.Linq;
using System.Text.Json;

namespace Assay.Client.Tests;

/// <summary>Compares values with the expectations in cases.json.</summary>
internal static class Matching
{
    internal static bool Matches(JsonElement value, JsonElement expected) => expected.ValueKind switch
    {
        JsonValueKind.Array => value.ValueKind == JsonValueKind.Array
            && value.GetArrayLength() == expected.GetArrayLength()
            && value.EnumerateArray().Zip(expected.EnumerateArray()).All(pair => Matches(pair.First, pair.Second)),
        JsonValueKind.Object => MatchesObject(value, expected),
        JsonValueKind.String => value.ValueKind == JsonValueKind.String && value.GetString() == expected.GetString(),
        JsonValueKind.Number => value.ValueKind == JsonValueKind.Number && value.GetDecimal() == expected.GetDecimal(),
        _ => value.ValueKind == expected.ValueKind,
    };

    private static bool MatchesObject(JsonElement value, JsonElement expected)
    {
        if (expected.TryGetProperty("$oneOf", out JsonElement some))
        {
            return some.EnumerateArray().Any(one => Matches(value, one));
        }

        if (expected.TryGetProperty("$type", out JsonElement type))
        {
            return value.ValueKind == (type.GetString() == "number" ? JsonValueKind.Number : JsonValueKind.String);
        }

        if (value.ValueKind != JsonValueKind.Object)
        {
            return false;
        }

        return expected.TryGetProperty("$keys", out JsonElement keys)
            ? value.EnumerateObject().Select(one => one.Name).OrderBy(name => name)
                .SequenceEqual(keys.EnumerateArray().Select(key => key.GetString()!).OrderBy(name => name))
            : expected.EnumerateObject().All(one => value.TryGetProperty(one.Name, out JsonElement found) && Matches(found, one.Value));
    }
}
