import { expect, test } from 'vitest';
import { atOnce } from '../../lib/at-once.ts';
import { batchOfSystemOne } from '../../lib/questions/systemone.ts';
import { decidesOnly } from '../contracts/contract.ts';
import type { Adapter } from '../encoder/adapter.ts';
import { EncoderModel } from './encoder-model.ts';
import type { ServedModel } from './serve.ts';

/** Most tokens of a request. */
const MOST = 131_072;
const ROW = 512;

/** Returns the number of tokens of a request with so many questions, each read in one row of 512 tokens. */
function prepared(questions: number): number {
  const adapter: Adapter = {
    capabilities: decidesOnly(ROW),
    *decide(asked, _state, _options, planned) {
      for (const _ of asked) {
        const ids = new Array<number>(ROW).fill(7);
        planned({ rows: [{ ids, shared: ROW - 1 }], read: () => ({ logprobs: [0] }) });
        yield;
      }
    },
  };
  const unused = async () => Promise.reject(new Error('nothing runs'));
  const graphs = { alone: true, batches: () => [], run: unused, head: unused, close: unused };
  const contract = { name: 'nli', version: null, temperature: 'none' };
  const model: ServedModel = new EncoderModel({
    model: 'acme/pairs' as never,
    contract,
    adapter,
    graphs,
    maxPromptLen: ROW,
    windows: false,
  });
  const body = {
    state: 'x',
    questions: Object.fromEntries(Array.from({ length: questions }, (_, i) => [`q${i}`, { type: 'noul' as const }])),
  };
  const batch = batchOfSystemOne(body as never, JSON.stringify(body));
  return atOnce(model.prepare({ kind: 'tasks', batch }, {})).promptTokens;
}

test('a request has at most 131,072 tokens in all rows, in each of which the text is read again', () => {
  expect(prepared(MOST / ROW)).toBe(ROW - 1 + MOST / ROW);
  expect(() => prepared(MOST / ROW + 1)).toThrow(
    expect.objectContaining({
      code: 'input_too_long',
      message: expect.stringMatching(/about 131584 tokens .* 131072/u),
    }),
  );
});
