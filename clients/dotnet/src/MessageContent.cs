using System;
using System.Collections.Generic;
using System.Linq;
using System.Text.Json;
using System.Text.Json.Serialization;

namespace Assay.Client;

/// <summary>Content of a message: text or a list of parts. Assign a string, or an array or list of
/// <see cref="ContentPart"/>.</summary>
[JsonConverter(typeof(Converter))]
public sealed class MessageContent
{
    private MessageContent(string? text, IReadOnlyList<ContentPart>? parts)
    {
        Text = text;
        Parts = parts;
    }

    /// <summary>The text; null if the content is a list of parts.</summary>
    public string? Text { get; }

    /// <summary>The parts; null if the content is text.</summary>
    public IReadOnlyList<ContentPart>? Parts { get; }

    /// <summary>Converts a text.</summary>
    public static implicit operator MessageContent(string text) => new(text, null);

    /// <summary>Converts a list of parts.</summary>
    public static implicit operator MessageContent(ContentPart[] parts) => new(null, parts);

    /// <summary>Converts a list of parts.</summary>
    public static implicit operator MessageContent(List<ContentPart> parts) => new(null, parts);

    private sealed class Converter : JsonConverter<MessageContent>
    {
        public override MessageContent Read(ref Utf8JsonReader reader, Type type, JsonSerializerOptions options) =>
            reader.TokenType == JsonTokenType.String
                ? reader.GetString()!
                : JsonSerializer.Deserialize<ContentPart[]>(ref reader, options)!;

        public override void Write(Utf8JsonWriter writer, MessageContent value, JsonSerializerOptions options)
        {
            if (value.Parts is null)
            {
                writer.WriteStringValue(value.Text);
                return;
            }

            JsonSerializer.Serialize(writer, value.Parts.ToArray(), options);
        }
    }
}
