import type { ChatRequest, TaskBatch } from './backend.ts';
import { AssayError } from './errors.ts';

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

/** Counts the characters of tasks that the model reads again, in further orders of their options. */
function repeatedCharacters(request: TaskBatch | ChatRequest): number {
  const orders = 'tasks' in request ? (request.probabilities?.orders ?? 1) : 1;
  if (!('tasks' in request) || orders === 1) return 0;
  return request.tasks.reduce((sum, task) => {
    const options = task.type === 'decide' ? (task.options?.length ?? 1) : 1;
    return sum + (Math.min(orders, options) - 1) * sizeOf(task).characters;
  }, 0);
}

/**
 * Counts the characters of all strings and object keys in a request, media included (`characters`), the number of its
 * base64 media (`media.count`), and their characters (`media.characters`).
 */
export function sizeOf(request: object): { characters: number; media: { count: number; characters: number } } {
  let characters = 0;
  const media = { count: 0, characters: 0 };
  const open: object[] = [request];
  for (let value = open.pop(); value; value = open.pop()) {
    for (const [key, member] of Object.entries(value)) {
      characters += Array.isArray(value) ? 0 : key.length;
      if (typeof member === 'string') characters += member.length;
      else if (typeof member === 'object' && member !== null) open.push(member);
    }
    if ('type' in value && value.type === 'base64' && 'data' in value && typeof value.data === 'string') {
      media.count++;
      media.characters += value.data.length;
    }
  }
  return { characters, media };
}
