package dev.assay;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.IntStream;
import java.util.stream.StreamSupport;

/** Compares values with the expectations in cases.json. */
final class Matching {
  private Matching() {}

  static boolean matches(JsonNode value, JsonNode expected) {
    if (expected.isArray()) {
      return value.isArray()
          && value.size() == expected.size()
          && IntStream.range(0, value.size()).allMatch(i -> matches(value.get(i), expected.get(i)));
    }
    if (!expected.isObject()) {
      return expected.isNumber() && value.isNumber()
          ? value.decimalValue().compareTo(expected.decimalValue()) == 0
          : value.equals(expected);
    }
    if (expected.has("$oneOf")) {
      return StreamSupport.stream(expected.get("$oneOf").spliterator(), false).anyMatch(value::equals);
    }
    if (expected.has("$type")) {
      return expected.get("$type").asText().equals("number") ? value.isNumber() : value.isTextual();
    }
    if (expected.has("$keys")) {
      Set<String> keys = new TreeSet<>();
      expected.get("$keys").forEach(key -> keys.add(key.asText()));
      Set<String> found = new TreeSet<>();
      value.fieldNames().forEachRemaining(found::add);
      return value.isObject() && found.equals(keys);
    }
    return value.isObject()
        && StreamSupport.stream(((Iterable<String>) expected::fieldNames).spliterator(), false)
            .allMatch(name -> value.has(name) && matches(value.get(name), expected.get(name)));
  }
}
