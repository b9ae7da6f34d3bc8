import { AssayError } from '../../lib/errors.ts';
import { checkLength, READ_IN_WINDOWS } from '../../lib/limits/request-size.ts';
import type { TextModel } from '../text/text-model.ts';
import type { ContractText } from './contract.ts';

/**
 * Characters of a text up to which it is encoded at once: even one token for each of them takes a fraction of a second.
 */
const SHORT = 4096;

/**
 * Creates the encoder of a decision model. Encoding stops with `input_too_long` for a text of more than `limit` tokens.
 */
export function contractText(model: TextModel, limit: number): ContractText {
  const { tokenizer, template, vocabulary } = model;
  const encode = (text: string): readonly number[] => {
    // Encoding megabytes takes minutes. `encodeUser` stops at the limit, and finds about as many tokens.
    if (text.length > SHORT) checkLength(tokenizer.encodeUser(text, false).length, limit, READ_IN_WINDOWS);
    return tokenizer.encodeTemplate(text, false);
  };
  return {
    encode,
    chat: (messages) => template.renderPlain(messages),
    begin: tokenizer.begin,
    token(text) {
      const id = tokenizer.id(text);
      if (id !== undefined) return id;
      throw new AssayError(
        'engine_failed',
        `The model's tokenizer has no token ${text}, which its prompt needs. Download the model again.`,
      );
    },
    encodeParts(parts) {
      const ids = encode(parts.join(''));
      const ends = ids.map(lengthSoFar(ids.map((id) => vocabulary.spelling(id).length)));
      const total = ends.at(-1) ?? 0;
      // A tokenizer may compose characters before it splits them; its tokens then spell the composed text.
      const spelled = byteLength(parts.join('')) === total ? parts : parts.map((part) => part.normalize('NFC'));
      let start = 0;
      const last = spelled.map((part) => {
        const end = start + byteLength(part);
        const index = ends.findLastIndex((to, i) => to <= end && (ends[i - 1] ?? 0) >= start && to > start);
        start = end;
        return index;
      });
      return { ids, last };
    },
  };
}

function lengthSoFar(lengths: readonly number[]): (id: number, index: number) => number {
  let sum = 0;
  return (_, index) => {
    sum += lengths[index] ?? 0;
    return sum;
  };
}

const encoder = new TextEncoder();
const byteLength = (text: string): number => encoder.encode(text).length;
