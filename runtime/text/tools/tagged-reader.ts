import { Automaton, type State } from '../../../lib/grammar/automaton/automaton.ts';
import type { TaggedMember, TaggedObject } from '../../../lib/grammar/tagged-object.ts';
import { overlap } from '../output/overlap.ts';
import type { CallReader } from './tool-output.ts';

/**
 * Reads arguments that the model writes between tags, and returns them as the JSON text of an object. Strings are
 * returned as they arrive, other values when they are complete.
 */
export class TaggedReader implements CallReader {
  readonly #object: TaggedObject;
  /** Text that was added, but is not read yet. */
  #text = '';
  /** Member whose value is being read; null between members. */
  #member: TaggedMember | null = null;
  #count = 0;
  #ended = false;

  constructor(object: TaggedObject) {
    this.#object = object;
  }

  push(text: string, ended: boolean): string {
    this.#text += text;
    let json = '';
    for (let part = this.#next(); part !== null; part = this.#next()) json += part;
    if (ended && !this.#ended) {
      this.#ended = true;
      json += this.#count === 0 ? '{}' : '}';
    }
    return json;
  }

  /** Reads the next part of the text. Returns its JSON text; null if more text is needed. */
  #next(): string | null {
    return this.#member ? this.#value(this.#member) : this.#name();
  }

  #name(): string | null {
    const { members, tags } = this.#object;
    for (const member of members) {
      const begin = tags.open + member.name + tags.named;
      if (!this.#text.startsWith(begin)) continue;
      this.#text = this.#text.slice(begin.length);
      this.#member = member;
      return `${this.#count++ === 0 ? '{' : ','}${JSON.stringify(member.name)}:${member.json ? '' : '"'}`;
    }
    return null;
  }

  #value({ json }: TaggedMember): string | null {
    const { close } = this.#object.tags;
    const end = this.#text.indexOf(close);
    if (end < 0) return json ? null : this.#partOfString(close);
    const written = this.#text.slice(0, end);
    this.#text = this.#text.slice(end + close.length);
    this.#member = null;
    if (!json) return `${escaped(written)}"`;
    return isJsonOf(json, written) ? written : JSON.stringify(written);
  }

  /**
   * Removes the text that certainly precedes the closing tag. Returns it as part of a JSON string; null if there is
   * none.
   */
  #partOfString(close: string): string | null {
    const safe = this.#text.length - overlap(this.#text, close);
    const part = this.#text.slice(0, safe);
    this.#text = this.#text.slice(safe);
    return part === '' ? null : escaped(part);
  }
}

/** Escapes a text for a JSON string. Adds no quotes. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** Tells whether a text is JSON that the grammar node accepts. Any other text is a string. */
function isJsonOf(node: NonNullable<TaggedMember['json']>, text: string): boolean {
  let state: State | null = new Automaton([{ before: '', value: node, after: '\n' }]).start;
  for (const byte of new TextEncoder().encode(`${text}\n`)) state = state?.next(byte) ?? null;
  return state?.complete ?? false;
}
