import type { Work } from '../protocol/messages.ts';

/** Says how much a request asks for. */
export interface Cost {
  /** Tokens of its prompt and its answer. */
  tokens: number;
  /** Characters of its texts and media. */
  characters: number;
}

/** Characters of a token, on the low side: English has four. */
const CHARACTERS_PER_TOKEN = 3;
/**
 * Tokens at which a prompt is estimated at most, so that a busy server, too, says when one is too long for the model. A
 * prompt that fits counts in full once its tokens are counted.
 */
const MOST_ESTIMATED = 32_768;
/** Tokens that an image or a sound becomes, roughly. */
const MEDIA_TOKENS = 256;
/** Tokens of an answer that are counted at most: most answers end long before their limit. */
const MOST_ANSWER_TOKENS = 256;

/** Estimates what a request costs before the model's tokenizer has counted its prompt. */
export function costOf(work: Work): Cost {
  const { characters, media } = sizeOf(work);
  const text = characters - media.characters;
  const prompt = Math.ceil(text / CHARACTERS_PER_TOKEN) + media.count * MEDIA_TOKENS;
  return { tokens: Math.min(prompt, MOST_ESTIMATED) + answerTokens(work), characters };
}

/** Returns the tokens that are counted for the answer of a request. */
export function answerTokens(work: Work): number {
  const most = work.kind === 'tasks' ? work.batch.maxOutputTokens : (work.request.maxTokens ?? MOST_ANSWER_TOKENS);
  return Math.min(most, MOST_ANSWER_TOKENS);
}

/** Counts the characters of all texts and object keys in a request, and those that are the data of media. */
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
