package dev.assay;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.assay.model.DecideTask;
import dev.assay.model.ExtractTask;
import dev.assay.model.Task;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;

class PackageTest {
  @Test
  void tellsWhatItWasMadeFrom() throws Exception {
    byte[] contract = Files.readAllBytes(Path.of("..", "..", "openapi.json"));
    byte[] hash = MessageDigest.getInstance("SHA-256").digest(contract);
    assertEquals(HexFormat.of().formatHex(hash), Contract.FINGERPRINT);
  }

  @Test
  void hasTheLicence() throws Exception {
    try (InputStream packed = Assay.class.getResourceAsStream("/META-INF/LICENSE")) {
      assertArrayEquals(Files.readAllBytes(Path.of("..", "..", "LICENSE")), packed.readAllBytes());
    }
  }

  @Test
  void aBaseUrlNeedsItsScheme() {
    Assay.Builder builder = Assay.builder().baseUrl("127.0.0.1:8080").apiKey("k");
    assertTrue(assertThrows(AssayException.class, builder::build).getMessage().contains("is no base URL"));
  }

  @Test
  void tasksMatchOnTheirClass() {
    Task task = new ExtractTask().name("a").instruction("!");
    String text = task instanceof DecideTask decide ? decide.getQuestion() : ((ExtractTask) task).getInstruction();
    assertEquals("!", text);
    assertEquals("extract", task.getType());
  }
}
