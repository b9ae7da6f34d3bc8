import { expect, it } from 'vitest';
import { takesLeadingSpace } from './vocabulary.ts';

const metaspace = { type: 'Metaspace', replacement: '▁' };
const strip = { type: 'Strip', content: ' ', start: 1, stop: 0 };

/** Expected values: `Tokenizer.from_str(…).decode([0])` of Hugging Face's tokenizers 0.23, with the token `▁a`. */
it.each([
  [metaspace, true],
  [{ ...metaspace, prepend_scheme: 'always' }, true],
  [{ ...metaspace, prepend_scheme: 'first', add_prefix_space: true }, true],
  [{ ...metaspace, prepend_scheme: 'never' }, false],
  [{ ...metaspace, prepend_scheme: 'never', add_prefix_space: true }, false],
  // Older versions wrote this; 0.23 refuses it.
  [{ ...metaspace, add_prefix_space: false }, false],
  [{ type: 'Sequence', decoders: [{ type: 'Replace' }, { type: 'Fuse' }, strip] }, true],
  [{ type: 'Sequence', decoders: [{ type: 'Replace' }, { type: 'Fuse' }, { ...strip, start: 0 }] }, false],
  [{ type: 'Sequence', decoders: [{ ...metaspace, prepend_scheme: 'never' }] }, false],
  [{ type: 'ByteLevel', add_prefix_space: true }, false],
  [null, false],
])('the decoder %j removes the space in front: %s', (decoder, expected) => {
  expect(takesLeadingSpace(decoder)).toBe(expected);
});
