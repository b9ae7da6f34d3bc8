import type { Work } from '../../protocol/messages.ts';

/** Describes the size of a request, for the limits of the admission queue. */
export interface Cost {
  /** Estimated number of tokens of its prompt and its answer. */
  tokens: number;
  /** Number of characters of its texts and of its base64 media. */
  characters: number;
}

/** Characters per token, for estimates. The value is low: English has about four. */
const CHARACTERS_PER_TOKEN = 3;
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
export function costOf(work: Work): Cost {
  const { characters, media } = sizeOf(work);
  const text = characters - media.characters;
  const prompt = Math.ceil(text / CHARACTERS_PER_TOKEN) + media.count * MEDIA_TOKENS;
  return { tokens: Math.min(prompt, MOST_ESTIMATED) + answerTokens(work), characters };
}

/** Estimates the tokens of a request's answer, for admission: its own limit, but at most `MOST_ANSWER_TOKENS`. */
export function answerTokens(work: Work): number {
  const most = work.kind === 'tasks' ? work.batch.maxOutputTokens : (work.request.maxTokens ?? MOST_ANSWER_TOKENS);
  return Math.min(most, MOST_ANSWER_TOKENS);
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
