import { at } from '../../lib/at.ts';
import { atOnce } from '../../lib/at-once.ts';
import { AssayError } from '../../lib/errors.ts';
import { checkLength, READ_IN_WINDOWS } from '../../lib/limits/request-size.ts';
import type { TextModel } from '../text/text-model.ts';
import { exactChunks } from '../text/tokenizer/tokenizer.ts';
import type { ContractText } from './contract.ts';

/** Characters of the texts that are encoded in one slice: some milliseconds. */
const SLICE = 4096;

/** Holds what work in parts has encoded, and what is left to encode. */
interface Slice {
  known: Map<string, readonly number[]>;
  /** Characters that may still be encoded at once. */
  left: number;
  missing: string[];
}

/**
 * Creates the encoder of a decision model. Encoding stops with `input_too_long` for a text of more than `limit` tokens.
 */
export function contractText(model: TextModel, limit: number): ContractText {
  const { tokenizer, template, vocabulary } = model;
  /** The slice of the work in parts that runs; null outside of one. */
  let slice: Slice | null = null;

  function* encoded(text: string): Generator<void, readonly number[]> {
    const ids: number[] = [];
    const around = (part: string) => tokenizer.encodeTemplate(part, true);
    for (const piece of exactChunks(text, around, tokenizer.splitsAtSigns)) {
      const last = ids.at(-1);
      if (last !== undefined) yield;
      if (piece.length > SLICE) {
        // An endless word has its author's tokens only if it is encoded whole, which is bounded by the limit.
        const about = yield* tokenizer.encodeInParts(piece, true);
        checkLength(ids.length + about.length, limit, READ_IN_WINDOWS);
      }
      for (const id of tokenizer.encodeTemplate(piece, last !== undefined && !tokenizer.control.has(last)))
        ids.push(id);
      checkLength(ids.length, limit, READ_IN_WINDOWS);
    }
    return ids;
  }

  function encode(text: string): readonly number[] {
    if (!slice) return atOnce(encoded(text));
    const known = slice.known.get(text);
    if (known) return known;
    if (text.length > slice.left) {
      slice.missing.push(text);
      return [];
    }
    slice.left -= text.length;
    const ids = atOnce(encoded(text));
    slice.known.set(text, ids);
    return ids;
  }

  function inParts(): <T>(work: () => T) => Generator<void, T> {
    const known = new Map<string, readonly number[]>();
    return function* run(work) {
      for (;;) {
        const missing: string[] = [];
        slice = { known, left: SLICE, missing };
        try {
          const done = work();
          if (missing.length === 0) return done;
        } catch (error) {
          // What fails without a text is done again with it.
          if (missing.length === 0) throw error;
        } finally {
          slice = null;
        }
        yield;
        for (const text of missing) {
          known.set(text, yield* encoded(text));
          yield;
        }
      }
    };
  }

  return {
    encode,
    inParts,
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
      let [start, next] = [0, 0];
      const last = spelled.map((part) => {
        const end = start + byteLength(part);
        while (next < ends.length && at(ends, next) <= end) next++;
        const within = next > 0 && at(ends, next - 1) > start && (ends[next - 2] ?? 0) >= start;
        start = end;
        return within ? next - 1 : -1;
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
