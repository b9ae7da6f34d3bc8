import type { ChatRequest, TaskBatch } from '../backend.ts';
import type { ChatMessage } from '../contract/conversation.ts';
import { AssayError } from '../errors.ts';

/** Describes the size of a request, for the limits of the admission queue and for quotas. */
export interface RequestSize {
  /** Estimated number of tokens of its prompt, with every order of the options, and of its answer. */
  tokens: number;
  /** Number of characters of its texts and of its base64 media. */
  characters: number;
}

/**
 * Maximum number of prompt tokens of one request, each task with every order of its options. A request beyond it would
 * occupy the model for minutes.
 */
export const MOST_REQUEST_TOKENS = 131_072;
/** Characters per token, for estimates. The value is low: English has about four. */
const CHARACTERS_PER_TOKEN = 3;
/**
 * Characters per token that texts of no language exceed much: a request that is too long even so is refused at once.
 */
const MOST_CHARACTERS_PER_TOKEN = 6;
/** Characters that the longest tokens of vocabularies have: runs of spaces and of signs. */
const CHARACTERS_OF_LONGEST_TOKEN = 256;
/**
 * Maximum estimate for a prompt, in tokens. Even a busy server thus admits a prompt that is too long, and refuses it
 * with the right error. A prompt that fits counts in full once its tokens are counted.
 */
const MOST_ESTIMATED = 32_768;
/** Rough number of tokens that represent an image or a recording. */
const MEDIA_TOKENS = 256;
/** Maximum number of tokens to count for an answer. Most answers end long before their limit. */
const MOST_ANSWER_TOKENS = 256;

/** Estimates the size of a request, before the model's tokenizer counts its prompt. */
export function sizeOfRequest(request: TaskBatch | ChatRequest): RequestSize {
  const { characters, media } = sizeOf(request);
  const text = characters - media.characters + repeatedCharacters(request);
  const prompt = Math.ceil(text / CHARACTERS_PER_TOKEN) + media.count * MEDIA_TOKENS;
  return { tokens: Math.min(prompt, MOST_ESTIMATED) + answerTokens(request), characters };
}

/** Estimates the tokens of a request's answer: its own limit, but at most `MOST_ANSWER_TOKENS`. */
export function answerTokens(request: TaskBatch | ChatRequest): number {
  const most = 'tasks' in request ? request.maxOutputTokens : (request.maxTokens ?? MOST_ANSWER_TOKENS);
  return Math.min(most, MOST_ANSWER_TOKENS);
}

/**
 * Throws `input_too_long` if the tasks of a batch, with every order of their options, are certainly longer than
 * `MOST_REQUEST_TOKENS`. Looks at their characters only, so it needs no tokenizer.
 */
export function checkRequestSize(batch: TaskBatch): void {
  const characters = sizeOf(batch.tasks).characters + repeatedCharacters(batch);
  checkRequestTokens(Math.ceil(characters / MOST_CHARACTERS_PER_TOKEN), 'at least ');
}

/** Advice for a request of tasks or questions that is too long. */
export const READ_IN_WINDOWS = ' Or send one text with "windows": {}, which reads it in parts.';

/**
 * Throws `input_too_long` if the texts of a request cannot fit in a prompt of `limit` tokens, whatever the tokenizer.
 * Such a text would keep the engine's process busy for seconds, only to be refused there.
 */
export function checkFits(request: TaskBatch | ChatRequest, limit: number): void {
  const { characters, media } = sizeOf(request);
  const text = characters - media.characters;
  if (text <= CHARACTERS_OF_LONGEST_TOKEN * limit) return;
  throw longerThanContext(limit, `${text} characters`, 'tasks' in request ? READ_IN_WINDOWS : '');
}

/**
 * Returns the `input_too_long` of an input that is longer than `limit` tokens (D-18).
 *
 * @param has what the input has: its number of tokens, or of characters
 * @param advice further sentences for the message, each after a space
 */
export function longerThanContext(limit: number, has: string, advice = ''): AssayError {
  // Clients recognise a full context by OpenAI's words "This model's maximum context length is", and then shorten the
  // conversation or take another model: litellm, CrewAI, Pydantic AI, Strands, Agno.
  const message = `This model's maximum context length is ${limit} tokens as it is loaded, and the input has ${has}. Shorten the input, load the model with a larger max_prompt_len, or load a model with a longer context.${advice}`;
  return new AssayError('input_too_long', message);
}

/**
 * Multiple of the prompt limit up to which tokens are counted. For a longer text, the error message states this number
 * with "more than".
 */
export const COUNTED_LIMITS = 4;

/**
 * Throws `input_too_long` if a prompt has more than `limit` tokens (D-18). The message states the number of tokens and
 * the limit, and ends with `advice`.
 */
export function checkLength(tokens: number, limit: number, advice = ''): void {
  if (tokens <= limit) return;
  const counted = tokens > COUNTED_LIMITS * limit ? `more than ${COUNTED_LIMITS * limit}` : tokens;
  throw longerThanContext(limit, `${counted}`, advice);
}

/**
 * Throws `input_too_long` for too many messages before they are rendered: each with a text needs at least one token,
 * and a template takes a second for some thousands. Of those without one, it may write several as a token.
 */
export function checkMessages(messages: readonly Pick<ChatMessage, 'parts'>[], limit: number): void {
  if (messages.length > COUNTED_LIMITS * limit) checkLength(messages.length, limit);
  if (messages.length <= limit) return;
  const said = messages.filter(({ parts }) => parts.some((part) => part.type !== 'text' || /\S/u.test(part.text)));
  if (said.length > limit) throw longerThanContext(limit, `at least ${said.length}`);
}

/**
 * Throws `input_too_long`, with both numbers, for more than `MOST_REQUEST_TOKENS`.
 *
 * @param precision words before the number in the message, such as `about `
 */
export function checkRequestTokens(tokens: number, precision = ''): void {
  if (tokens <= MOST_REQUEST_TOKENS) return;
  throw new AssayError(
    'input_too_long',
    `The tasks of this request have ${precision}${tokens} tokens together, counted once for each order of their options; one request may have ${MOST_REQUEST_TOKENS}. Send fewer tasks, options or orders in one request.`,
  );
}

/**
 * Throws `input_too_long` if the first `done` of `all` parts of a request have more than `MOST_REQUEST_TOKENS`
 * already; the message states about how many all have.
 */
export function checkRequestShare(tokens: number, done: number, all: number): void {
  if (tokens > MOST_REQUEST_TOKENS) checkRequestTokens(Math.round((tokens / done) * all), 'about ');
}

/** Counts the characters of tasks that the model reads again, in further orders of their options. */
function repeatedCharacters(request: TaskBatch | ChatRequest): number {
  const orders = 'tasks' in request ? (request.probabilities?.orders ?? 1) : 1;
  if (!('tasks' in request) || orders === 1) return 0;
  return request.tasks.reduce((sum, task) => {
    const options = task.type === 'decide' ? (task.options?.length ?? 1) : 1;
    return sum + (Math.min(orders, options) - 1) * sizeOf(task).characters;
  }, 0);
}

/** Returns the characters of an object that is the source of media, encoded in it; null for any other object. */
function mediaCharacters(source: { type?: unknown; data?: unknown; mimeType?: unknown; url?: unknown }): number | null {
  const { type, data, mimeType = '', url } = source;
  if (type === 'base64' && typeof data === 'string') return data.length + String(mimeType).length;
  return type === 'url' && typeof url === 'string' && url.startsWith('data:') ? url.length : null;
}

/**
 * Counts the characters of all strings and object keys in a request, media included (`characters`), the number of its
 * encoded media (`media.count`), and their characters (`media.characters`).
 */
export function sizeOf(request: object): { characters: number; media: { count: number; characters: number } } {
  let characters = 0;
  const media = { count: 0, characters: 0 };
  const open: object[] = [request];
  for (let value = open.pop(); value; value = open.pop()) {
    for (const key of Object.keys(value)) {
      const member = (value as { readonly [key: string]: unknown })[key];
      characters += Array.isArray(value) ? 0 : key.length;
      if (typeof member === 'string') characters += member.length;
      else if (typeof member === 'object' && member !== null) open.push(member);
    }
    const encoded = 'type' in value ? mediaCharacters(value) : null;
    if (encoded !== null) {
      media.count++;
      media.characters += encoded;
    }
  }
  return { characters, media };
}
