/** Reads the JSON text of an object from streamed text that may continue after the object's closing bracket. */
export class ArgumentsReader {
  #depth = 0;
  #inString = false;
  #escaped = false;
  #ended = false;

  /** Adds text. Returns the part of it that belongs to the object. */
  push(text: string): string {
    let end = 0;
    while (end < text.length && !this.#ended) this.#read(text[end++]);
    return text.slice(0, end);
  }

  #read(character: string | undefined): void {
    if (this.#inString) {
      if (!this.#escaped && character === '"') this.#inString = false;
      this.#escaped = !this.#escaped && character === '\\';
    } else if (character === '"') this.#inString = true;
    else if (character === '{' || character === '[') this.#depth++;
    else if (character === '}' || character === ']') {
      this.#depth--;
      this.#ended = this.#depth === 0;
    }
  }
}
