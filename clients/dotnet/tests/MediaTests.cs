using System;
using System.Collections.Generic;
using System.IO;
using System.Text;
using System.Threading.Tasks;

namespace Assay.Client.Tests;

/// <summary>Tests the helpers for files of images and recordings.</summary>
internal static class MediaTests
{
    private static readonly (string Bytes, string Type)[] Images =
    {
        ("\u00ff\u00d8\u00ff\u00e0", "image/jpeg"),
        ("\u0089PNG\r\n\u001a\n.", "image/png"),
        ("RIFF....WEBPVP8 ", "image/webp"),
        ("GIF89a", "image/gif"),
    };

    private static readonly (string Bytes, string Type)[] Recordings =
    {
        ("RIFF....WAVEfmt ", "audio/wav"),
        ("fLaC", "audio/flac"),
        ("OggS", "audio/ogg"),
        ("ID3\u0004", "audio/mpeg"),
        ("\u00ff\u00fb\u0090\u0000", "audio/mpeg"),
    };

    // AAC in ADTS begins like MP3, but its header names another layer.
    private static readonly string[] Others = { "", "<svg/>", "\u00ff", "\u00ff\u00f1\u0050\u0080", "....ftypM4A " };

    internal static IEnumerable<(string Name, Func<Task> Test)> All()
    {
        yield return ("files are sent as base64, with the type of their first bytes", Sent);
        yield return ("files of other formats are refused before they are sent", Refused);
    }

    private static Task Sent()
    {
        foreach ((string bytes, string type) in Images)
        {
            ImageInput image = WithFile(bytes, Media.ImageInput);
            Check.Equal(("base64", type, bytes), (image.Type, image.MimeType, Decoded(image.Data)), "image");
        }

        foreach ((string bytes, string type) in Recordings)
        {
            AudioInput audio = WithFile(bytes, Media.AudioInput);
            Check.Equal(("base64", type, bytes), (audio.Type, audio.MimeType, Decoded(audio.Data)), "recording");
        }

        return Task.CompletedTask;
    }

    private static async Task Refused()
    {
        foreach (string other in Others)
        {
            await Check.Throws(typeof(AssayException), () => Task.FromResult(WithFile(other, Media.ImageInput)));
            await Check.Throws(typeof(AssayException), () => Task.FromResult(WithFile(other, Media.AudioInput)));
        }

        await Check.Throws(typeof(AssayException), () => Task.FromResult(WithFile("GIF89a", Media.AudioInput)));
    }

    private static T WithFile<T>(string bytes, Func<string, T> read)
    {
        string path = Path.GetTempFileName();
        try
        {
            File.WriteAllBytes(path, Encoding.Latin1.GetBytes(bytes));
            return read(path);
        }
        finally
        {
            File.Delete(path);
        }
    }

    private static string Decoded(string? data) => Encoding.Latin1.GetString(Convert.FromBase64String(data!));
}
