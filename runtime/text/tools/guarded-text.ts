import type { Json } from '../../../lib/answer-shape.ts';
import type { Tool } from '../../../lib/backend.ts';
import type { ToolCall } from '../../../lib/conversation.ts';

/*
 * Tools and calls as chat templates read them. Templates write them in forms of their own, most as JSON, so their texts
 * cannot be kept out of the template as those of messages are. Texts that could hold a control token are guarded: the
 * template writes the guards with them, and what is between guards is the caller's text (`guardedRanges`).
 */

const OPEN = '\uE003';
const CLOSE = '\uE004';
const GUARDED = /\uE003([^\uE003\uE004]*)\uE004/gu;

/** Texts without the characters that control tokens are made of, such as `<`, `|` and `[`. */
const PLAIN = /^[\p{L}\p{N}\s.,;:!?'"()/_$*+=-]*$/u;
/** Characters that mean something to the code that renders templates. */
const RESERVED = /[\uE000-\uE004]/gu;

/** Returns tools as templates read them, in OpenAI's form. */
export function templateTools(tools: readonly Tool[]): Json {
  return tools.map(({ name, description, parameters }) => ({
    type: 'function',
    function: {
      name,
      ...(description === undefined ? {} : { description: guard(description) }),
      parameters: guarded(parameters),
    },
  }));
}

/** Returns calls as templates read them: the arguments are an object, as transformers gives it. */
export function templateCalls(calls: readonly ToolCall[]): Json {
  return calls.map(({ id, name, arguments: text }) => ({
    id,
    type: 'function',
    // The request was refused unless it is JSON (`lib/schema/chat-tools.ts`).
    function: { name, arguments: guarded(JSON.parse(text) as Json) },
  }));
}

/** Splits a rendered text at its guards. Every second text, from the second one on, is the caller's. */
export function splitAtGuards(rendered: string): string[] {
  return rendered.split(GUARDED);
}

function guarded(value: Json): Json {
  if (typeof value === 'string') return guard(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(guarded);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [guard(name), guarded(member)]));
}

function guard(text: string): string {
  return PLAIN.test(text) ? text : `${OPEN}${text.replace(RESERVED, '\uFFFD')}${CLOSE}`;
}
