import type { Tool, ToolUse } from '../../../lib/backend.ts';
import type { Tags } from '../../../lib/grammar/tagged-object.ts';
import type { CallText } from '../../../lib/tasks/tool-automaton.ts';
import { RECIPIENT } from '../output/answer-splitter.ts';
import type { ReasoningFormat } from '../output/reasoning-format.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';
import type { ToolFormat } from './tool-format.ts';

/** Describes a step of writing a call: a sequence of control tokens, or text under a grammar. */
export type CallStep = { control: readonly number[] } | CallText;

/** Describes how the tool calls of one answer are written in tokens. */
export interface CallGrammar {
  tools: readonly Tool[];
  /** True if the answer must be a call. */
  forced: boolean;
  /**
   * Marks the beginning of a call in free text: a control token, or a text, `anywhere` or only at the beginning of the
   * answer. For a model that writes headers, it is the text before the recipient in a header; `inChannel` has the steps
   * of a call whose header names the channel before the recipient.
   */
  trigger:
    | { control: number }
    | { text: string; anywhere: boolean }
    | { header: string; inChannel: readonly CallStep[] };
  /**
   * Steps of the first call after its trigger token; or, if the trigger is a text, of the whole call including that
   * text.
   */
  triggered: readonly CallStep[];
  /**
   * Text that also begins a call, without what the template writes before it (`<function=` without `<tool_call>`), and
   * the steps of such a call; null if the format has no such text.
   */
  bare: { text: string; anywhere: boolean; steps: readonly CallStep[] } | null;
  /** Steps of the first call if the answer begins with it. */
  first: readonly CallStep[];
  /** Steps of the first call if it follows the reasoning. */
  afterReasoning: readonly CallStep[];
  /** Steps of a further call; null if the answer ends after the first. */
  next: readonly CallStep[] | null;
  /** Steps of a text that may end an answer instead of a further call; null if only an end token may. */
  ending: readonly CallStep[] | null;
}

interface GrammarOptions {
  format: ToolFormat;
  use: ToolUse;
  tokenizer: Pick<Tokenizer, 'controlTexts'>;
  reasoning: ReasoningFormat;
}

/**
 * Text between the name of a tool and its arguments if the header names the channel first. GPT-OSS does this, although
 * its template names the channel last. Source: OpenAI, "Harmony response format".
 */
const IN_CHANNEL = ' <|constrain|>json<|message|>';

/**
 * Derives how the calls of one answer are written in tokens from the format of the chat template and the request's use
 * of tools.
 */
export function callGrammar({ format, use, tokenizer, reasoning }: GrammarOptions): CallGrammar {
  const { choice, parallel } = use;
  const named = typeof choice === 'object' ? choice.name : null;
  const tools = named === null ? use.tools : use.tools.filter(({ name }) => name === named);
  const coded = (text: string) => codeControls(text, tokenizer.controlTexts);
  const [rest, separator] = [coded(format.rest), format.separator === null ? null : coded(format.separator)];
  const several = parallel && separator !== null;
  const close = several ? sharedStart(rest, separator) : (endOfOnlyCall(format).exec(rest)?.[0] ?? '');
  const call = (head: string, between = format.between) => {
    const pieces = [
      ...piecesOf(head, tokenizer.controlTexts),
      'name' as const,
      ...piecesOf(coded(between), tokenizer.controlTexts),
      'arguments' as const,
      ...piecesOf(close, tokenizer.controlTexts),
    ];
    return stepsOf(pieces, format.tags);
  };
  const head = coded(format.head);
  const whole = call(head.trimStart());
  const begin = whole[0];
  const trigger = reasoning.channels
    ? { header: RECIPIENT, inChannel: call(head.trimStart(), IN_CHANNEL) }
    : begin && 'control' in begin
      ? { control: begin.control[0] ?? -1 }
      : textTrigger(begin, format);
  const [ending] = several ? piecesOf(rest.slice(close.length), tokenizer.controlTexts) : [];
  return {
    tools,
    forced: choice !== 'auto',
    trigger,
    triggered: 'control' in trigger ? withoutFirstToken(whole) : whole,
    bare: bareCall(format, call, 'text' in trigger ? trigger.anywhere : format.textBefore),
    first: call(head),
    afterReasoning: call(
      coded(reasoning.none.slice(reasoning.none.indexOf(reasoning.close) + reasoning.close.length)) + head.trimStart(),
    ),
    next: several ? call(separator.slice(close.length)) : null,
    ending: ending && 'text' in ending ? stepsOf([ending]) : null,
  };
}

/**
 * Returns a pattern for the text with which an answer's only call ends, after its arguments. After JSON, it matches the
 * brackets, because a token may contain them together with the end of the arguments. After tags, it matches the next
 * tag, which may be one control token: it shows that no more arguments follow.
 */
function endOfOnlyCall({ tags }: ToolFormat): RegExp {
  return tags ? /^(?:<[^>]*>|[\u{100000}-\u{10FFFD}])/u : /^\s*[}\])]+/u;
}

/**
 * Returns the trigger of a call that begins with text: the text up to the end of its first word, such as `{"name`,
 * `<tool_call` or `Action:`. After the first word, models vary the spaces. A text that begins with a word may be part
 * of any sentence, so it counts only at the beginning of an answer.
 */
function textTrigger(begin: CallText | undefined, { textBefore }: ToolFormat): { text: string; anywhere: boolean } {
  const text = begin?.before ?? '';
  const trigger = /^[^\p{L}]*\p{L}[\p{L}\p{N}_]*:?/u.exec(text)?.[0] ?? text;
  return { text: trigger, anywhere: textBefore && !/^\p{L}/u.test(trigger) };
}

/**
 * Returns how a call begins without the tag around it. Models that write arguments between tags omit that tag at times,
 * and the parsers of vLLM and of Qwen3-Coder's publisher then read the call from its `<function=`.
 */
function bareCall(
  { head, tags }: ToolFormat,
  call: (head: string) => CallStep[],
  anywhere: boolean,
): CallGrammar['bare'] {
  const text = /<[^<>]+>\s*(<[^<>]+=)$/u.exec(head)?.[1];
  return tags && text ? { text, anywhere, steps: call(text) } : null;
}

function withoutFirstToken([first, ...rest]: readonly CallStep[]): CallStep[] {
  if (!first || !('control' in first)) return rest;
  return first.control.length > 1 ? [{ control: first.control.slice(1) }, ...rest] : rest;
}

/** Joins neighbouring pieces of the same kind to steps. */
function stepsOf(pieces: readonly (Piece | 'name' | 'arguments')[], tags?: Tags): CallStep[] {
  const steps: CallStep[] = [];
  for (const piece of pieces) {
    const last = steps.at(-1);
    if (typeof piece === 'object' && 'control' in piece) {
      if (last && 'control' in last) steps[steps.length - 1] = { control: [...last.control, piece.control] };
      else steps.push({ control: [piece.control] });
      continue;
    }
    const open =
      last && !('control' in last) ? last : { before: '', name: false, between: '', arguments: false, after: '' };
    if (open !== last) steps.push(open);
    if (piece === 'name') open.name = true;
    else if (piece === 'arguments') {
      open.arguments = true;
      if (tags) open.tags = tags;
    } else if (open.arguments) open.after += piece.text;
    else if (open.name) open.between += piece.text;
    else open.before += piece.text;
  }
  return steps;
}

/** Describes a piece of a template's text: one control token, or text without any. */
type Piece = { control: number } | { text: string };

/** First of the private-use characters that represent control tokens, in the order of `controls`. */
const BASE = 0x100000;
const CODED = /([\u{100000}-\u{10FFFD}])/u;

/**
 * Replaces each control token in a text by one private-use character. A comparison of texts then cannot split a token.
 *
 * @param controls id of each control token, by its text
 */
export function codeControls(text: string, controls: ReadonlyMap<string, number>): string {
  // Longer ones first, because a token may begin with the text of another.
  const found = [...controls.keys()].filter((control) => control !== '' && text.includes(control));
  const indices = new Map([...controls.keys()].map((control, i) => [control, i]));
  let coded = text;
  for (const control of found.sort((a, b) => b.length - a.length)) {
    coded = coded.replaceAll(control, String.fromCodePoint(BASE + (indices.get(control) ?? 0)));
  }
  return coded;
}

/**
 * Splits a text from `codeControls` into control tokens and the texts between them. `controls` must be the same map.
 */
function piecesOf(coded: string, controls: ReadonlyMap<string, number>): Piece[] {
  const ids = [...controls.values()];
  return coded
    .split(CODED)
    .filter((part) => part !== '')
    .map((part) => (CODED.test(part) ? { control: ids[(part.codePointAt(0) ?? BASE) - BASE] ?? -1 } : { text: part }));
}

/** Returns the longest common beginning of two texts. */
function sharedStart(one: string, other: string): string {
  const [a, b] = [Array.from(one), Array.from(other)];
  const end = a.findIndex((character, i) => character !== b[i]);
  return end < 0 ? one : a.slice(0, end).join('');
}
