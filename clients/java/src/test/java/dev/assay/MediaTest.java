package dev.assay;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.assay.model.AudioInput;
import dev.assay.model.ImageInput;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MediaTest {
  private static final Map<String, String> IMAGES =
      Map.of(
          "\u00ff\u00d8\u00ff\u00e0", "image/jpeg",
          "\u0089PNG\r\n\u001a\n.", "image/png",
          "RIFF....WEBPVP8 ", "image/webp",
          "GIF89a", "image/gif");
  private static final Map<String, String> RECORDINGS =
      Map.of(
          "RIFF....WAVEfmt ", "audio/wav",
          "fLaC", "audio/flac",
          "OggS", "audio/ogg",
          "ID3\u0004", "audio/mpeg",
          "\u00ff\u00fb\u0090\u0000", "audio/mpeg");

  /** AAC in ADTS begins like MP3, but its header names another layer. */
  private static final List<String> OTHERS = List.of("", "<svg/>", "\u00ff", "\u00ff\u00f1\u0050\u0080", "....ftypM4A ");

  @TempDir Path folder;

  @Test
  void filesAreSentAsBase64WithTheTypeOfTheirFirstBytes() throws IOException {
    for (Map.Entry<String, String> row : IMAGES.entrySet()) {
      ImageInput image = Media.imageInput(file(row.getKey()));
      assertEquals(List.of("base64", row.getValue()), List.of(image.getType(), image.getMimeType()));
      assertEquals(row.getKey(), decoded(image.getData()));
    }
    for (Map.Entry<String, String> row : RECORDINGS.entrySet()) {
      AudioInput audio = Media.audioInput(file(row.getKey()));
      assertEquals(List.of("base64", row.getValue()), List.of(audio.getType(), audio.getMimeType()));
      assertEquals(row.getKey(), decoded(audio.getData()));
    }
  }

  @Test
  void otherFormatsAreRefusedBeforeTheyAreSent() throws IOException {
    for (String other : OTHERS) {
      Path file = file(other);
      assertThrows(AssayException.class, () -> Media.imageInput(file));
      assertThrows(AssayException.class, () -> Media.audioInput(file));
    }
    Path image = file("GIF89a");
    assertThrows(AssayException.class, () -> Media.audioInput(image));
    assertThrows(NoSuchFileException.class, () -> Media.imageInput(folder.resolve("none.png")));
  }

  private Path file(String bytes) throws IOException {
    return Files.write(folder.resolve("a.bin"), bytes.getBytes(StandardCharsets.ISO_8859_1));
  }

  private static String decoded(String data) {
    return new String(Base64.getDecoder().decode(data), StandardCharsets.ISO_8859_1);
  }
}
