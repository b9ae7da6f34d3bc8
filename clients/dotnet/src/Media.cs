using System;
using System.IO;
using System.Linq;
using System.Text;

namespace Assay.Client;

/// <summary>Turns files of images and recordings into inputs of a request.</summary>
public static class Media
{
    // Media types, the first bytes of their files, and where they are.
    private static readonly (string Type, string Start, int At)[] Images =
    {
        ("image/jpeg", "\u00ff\u00d8\u00ff", 0),
        ("image/png", "\u0089PNG\r\n\u001a\n", 0),
        ("image/webp", "WEBP", 8),
        ("image/gif", "GIF8", 0),
    };

    private static readonly (string Type, string Start, int At)[] Recordings =
    {
        ("audio/wav", "WAVE", 8),
        ("audio/flac", "fLaC", 0),
        ("audio/ogg", "OggS", 0),
        ("audio/mpeg", "ID3", 0),
    };

    /// <summary>Reads an image file: <c>Images = new[] { Media.ImageInput("receipt.jpg") }</c>. Throws an
    /// <see cref="AssayException"/> for a format that the server does not read.</summary>
    public static ImageInput ImageInput(string path)
    {
        byte[] bytes = File.ReadAllBytes(path);
        string type = TypeOf(bytes, Images) ?? throw Unread(path, "JPEG, PNG, WebP or GIF");
        return new ImageInput { Type = "base64", MimeType = type, Data = Convert.ToBase64String(bytes) };
    }

    /// <summary>Reads a recording: <c>Audio = new[] { Media.AudioInput("call.mp3") }</c>. Throws an
    /// <see cref="AssayException"/> for a format that the server does not read.</summary>
    public static AudioInput AudioInput(string path)
    {
        byte[] bytes = File.ReadAllBytes(path);
        string type = TypeOf(bytes, Recordings)
            ?? (IsMp3Frame(bytes) ? "audio/mpeg" : throw Unread(path, "WAV, MP3, FLAC or Ogg"));
        return new AudioInput { Type = "base64", MimeType = type, Data = Convert.ToBase64String(bytes) };
    }

    private static string? TypeOf(byte[] bytes, (string Type, string Start, int At)[] signatures) =>
        signatures
            .FirstOrDefault(one => bytes.Skip(one.At).Take(one.Start.Length).SequenceEqual(Encoding.Latin1.GetBytes(one.Start)))
            .Type;

    // The header of an MPEG frame of layer III; AAC has another layer.
    private static bool IsMp3Frame(byte[] bytes) => bytes.Length > 1 && bytes[0] == 0xff && (bytes[1] & 0xe6) == 0xe2;

    private static AssayException Unread(string path, string formats) =>
        new($"{path} is not in a format that Assay reads. Send {formats}.");
}
