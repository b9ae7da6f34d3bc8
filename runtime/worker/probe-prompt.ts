import { spreadTokens } from '../engine/self-check/spread-tokens.ts';
import { readModelText } from '../text/model-files.ts';
import { createTokenizer } from '../text/tokenizer/tokenizer.ts';

/** Text that resembles a request to the service. */
const TEXT =
  'The parcel came two weeks late and the mug was broken. I want my money back. Does the customer ask for a refund? Answer with yes or no.';
const MOST_TOKENS = 32;

/**
 * Returns the ids of the first tokens, at most 32, of an ordinary text, because weight forms must be measured on
 * activations like those of real requests. For a model whose tokenizer cannot be read, returns ids scattered over its
 * vocabulary.
 *
 * @param source folder of the published model
 */
export async function probePrompt(source: string, vocabSize: number, contextLength: number): Promise<number[]> {
  const ids = await textTokens(source).catch(() => []);
  const usable = ids.length > 0 && ids.every((id) => id < vocabSize);
  const tokens = usable ? ids : spreadTokens(vocabSize, MOST_TOKENS);
  return tokens.slice(0, Math.min(MOST_TOKENS, contextLength));
}

async function textTokens(source: string): Promise<number[]> {
  const tokenizer = createTokenizer(await readModelText(source));
  const ids = tokenizer.encodeUser(TEXT, false);
  return tokenizer.begin === null || ids[0] === tokenizer.begin ? [...ids] : [tokenizer.begin, ...ids];
}
