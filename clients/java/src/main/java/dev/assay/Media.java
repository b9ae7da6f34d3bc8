package dev.assay;

import dev.assay.model.AudioInput;
import dev.assay.model.ImageInput;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Optional;

/** Turns files of images and recordings into inputs of a request. */
public final class Media {
  /** A media type, the first bytes of its files, and where they are. */
  private record Signature(String type, byte[] start, int at) {
    Signature(String type, String start, int at) {
      this(type, start.getBytes(StandardCharsets.ISO_8859_1), at);
    }

    boolean matches(byte[] bytes) {
      int end = at + start.length;
      return bytes.length >= end && Arrays.equals(bytes, at, end, start, 0, start.length);
    }
  }

  private static final List<Signature> IMAGES =
      List.of(
          new Signature("image/jpeg", "\u00ff\u00d8\u00ff", 0),
          new Signature("image/png", "\u0089PNG\r\n\u001a\n", 0),
          new Signature("image/webp", "WEBP", 8),
          new Signature("image/gif", "GIF8", 0));
  private static final List<Signature> RECORDINGS =
      List.of(
          new Signature("audio/wav", "WAVE", 8),
          new Signature("audio/flac", "fLaC", 0),
          new Signature("audio/ogg", "OggS", 0),
          new Signature("audio/mpeg", "ID3", 0));

  private Media() {}

  /**
   * Reads an image file: {@code new DecideRequest().addImagesItem(imageInput(Path.of("receipt.jpg")))}. Throws an
   * {@link AssayException} for a format that the server does not read.
   */
  public static ImageInput imageInput(Path file) throws IOException {
    byte[] bytes = Files.readAllBytes(file);
    String type = typeOf(bytes, IMAGES).orElseThrow(() -> unread(file, "JPEG, PNG, WebP or GIF"));
    return new ImageInput().type("base64").mimeType(type).data(Base64.getEncoder().encodeToString(bytes));
  }

  /**
   * Reads a recording: {@code new DecideRequest().addAudioItem(audioInput(Path.of("call.mp3")))}. Throws an {@link
   * AssayException} for a format that the server does not read.
   */
  public static AudioInput audioInput(Path file) throws IOException {
    byte[] bytes = Files.readAllBytes(file);
    String type =
        typeOf(bytes, RECORDINGS)
            .or(() -> isMp3Frame(bytes) ? Optional.of("audio/mpeg") : Optional.empty())
            .orElseThrow(() -> unread(file, "WAV, MP3, FLAC or Ogg"));
    return new AudioInput().type("base64").mimeType(type).data(Base64.getEncoder().encodeToString(bytes));
  }

  private static Optional<String> typeOf(byte[] bytes, List<Signature> signatures) {
    return signatures.stream().filter(one -> one.matches(bytes)).map(Signature::type).findFirst();
  }

  /**
   * Tells whether bytes begin with the frame header of MPEG layer III (MP3). AAC has a similar header with another
   * layer.
   */
  private static boolean isMp3Frame(byte[] bytes) {
    return bytes.length > 1 && (bytes[0] & 0xff) == 0xff && (bytes[1] & 0xe6) == 0xe2;
  }

  private static AssayException unread(Path file, String formats) {
    return new AssayException(file + " is not in a format that Assay reads. Send " + formats + ".");
  }
}
