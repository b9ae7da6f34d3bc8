import type { Tool, ToolUse } from '../../../lib/backend.ts';
import { Automaton, type State } from '../../../lib/grammar/automaton/automaton.ts';
import { type TaggedMember, type TaggedObject, type Tags, taggedObject } from '../../../lib/grammar/tagged-object.ts';
import { overlap } from '../output/answer-splitter.ts';
import type { TextModel } from '../text-model.ts';
import { callGrammar } from './call-grammar.ts';
import { textTriggers } from './call-trigger.ts';
import { ToolConstraint } from './tool-constraint.ts';
import { type CallReader, ToolOutput } from './tool-output.ts';

interface ToolFormOptions {
  use: ToolUse;
  stops: readonly string[];
  /** True if the prompt ends inside a reasoning block. */
  thinking: boolean;
  /** False: a forced call comes without reasoning. True by default. */
  mayReason?: boolean;
}

/**
 * Returns the grammar that constrains an answer with tools, and the reader that splits its tokens into text and calls.
 * The model's template must support tools (`ChatTemplate.tools`). Throws `unsupported_schema` if the template writes
 * arguments between tags and no grammar can write a tool's parameters so.
 */
export function toolForm(
  { template, tokenizer, vocabulary }: TextModel,
  { use, stops, thinking, mayReason = true }: ToolFormOptions,
): { constraint: ToolConstraint; output: ToolOutput } {
  const format = template.tools();
  if (!format) throw new Error('a chat with tools was not refused');
  const { reasoning, thinks } = template;
  const grammar = callGrammar({ format, use, tokenizer, reasoning });
  // If several tokens spell the opening mark, a forced call is written without reasoning.
  const open = thinks && mayReason ? (tokenizer.id(reasoning.open) ?? null) : null;
  const constraint = new ToolConstraint({ grammar, vocabulary, reasoning, thinking, open });
  return {
    constraint,
    output: new ToolOutput(vocabulary, {
      constraint,
      triggers: textTriggers(grammar),
      reader: readerOf(use.tools, format.tags),
      stops,
      thinking,
      format: reasoning,
    }),
  };
}

/** Returns a function that creates the reader of a call's arguments. */
function readerOf(tools: readonly Tool[], tags: Tags | undefined): (tool: Tool) => CallReader {
  if (!tags) return () => new ArgumentsReader();
  const objects = new Map(tools.map((tool, i) => [tool, taggedObject(tool.parameters, tags, `tools[${i}]`)]));
  return (tool) => {
    const object = objects.get(tool);
    if (!object) throw new Error('a call to a tool that was not sent');
    return new TaggedReader(object);
  };
}

/** Reads the JSON text of an object from streamed text that may continue after the object's closing bracket. */
class ArgumentsReader {
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
