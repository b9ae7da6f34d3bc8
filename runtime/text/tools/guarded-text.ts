import type { Tool } from '../../../lib/backend.ts';
import type { Json } from '../../../lib/contract/answer-shape.ts';
import type { ToolCall } from '../../../lib/contract/conversation.ts';

/**
 * Prepares tools and calls for chat templates so that no text of the caller can become a control token. In messages,
 * placeholders stand for the caller's texts while the template renders. That does not work here, because templates
 * write tools and calls in many forms, most as JSON. Instead, each text that could contain a control token is put
 * between two guard characters, which the template copies. `splitAtGuards` finds these texts in the rendered prompt,
 * and they are then encoded as plain text.
 */

const OPEN = '\uE003';
const CLOSE = '\uE004';
const GUARDED = /\uE003([^\uE003\uE004]*)\uE004/gu;

/** Matches texts without the characters that control tokens contain, such as `<`, `|` and `[`. */
const PLAIN = /^[\p{L}\p{N}\s.,;:!?'"()/_$*+=-]*$/u;
/** Characters that the rendering code uses as placeholders and guards. Callers' texts must not contain them. */
const RESERVED = /[\uE000-\uE004]/gu;

/** Returns tools as OpenAI's API writes them, which chat templates expect, with guards around the caller's texts. */
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

/**
 * Returns calls as chat templates expect them, with guards around the caller's texts. Their arguments are an object,
 * not a JSON text, as transformers passes them.
 */
export function templateCalls(calls: readonly ToolCall[]): Json {
  return calls.map(({ id, name, arguments: text }) => ({
    id,
    type: 'function',
    function: { name, arguments: guardedValue(text) },
  }));
}

/**
 * Returns the arguments of a call as JSON text, with guards around the caller's texts, and with spaces between members
 * as templates write them.
 */
export function guardedArguments({ arguments: text }: ToolCall): string {
  // Line breaks can only be between members here: JSON escapes those in strings.
  return JSON.stringify(guardedValue(text), null, 1).replace(/,\n */gu, ', ').replace(/\n */gu, '');
}

function guardedValue(json: string): Json {
  // A cast: the request was refused if the arguments are not JSON (`lib/schema/chat-tools.ts`).
  return guarded(JSON.parse(json) as Json);
}

/** Splits a rendered text at its guards. Every second part, from the second on, is the caller's text. */
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
