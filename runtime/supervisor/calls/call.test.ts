import { expect, test } from 'vitest';
import type { FromEngine, WantedMedia, Work } from '../../protocol/messages.ts';
import { type CallMedia, type CallWire, EngineCall } from './call.ts';

const settings = { model: 'a/b', tasks: [], temperature: 0, maxOutputTokens: 16 };
const work: Work = { kind: 'tasks', batch: { ...settings, input: { context: '' }, media: [] } };

/** Creates a call whose messages to the engine process are recorded in `sent`, by type. */
function callWith({ media }: { media?: CallMedia } = {}) {
  const sent: string[] = [];
  const wire: CallWire = {
    id: 'a',
    sendWork: ({ type }, sending) => {
      sending();
      sent.push(type);
    },
    sendCancel: () => void sent.push('cancel'),
    counted: () => undefined,
    settled: () => undefined,
  };
  const options = { work, signal: new AbortController().signal, timeoutMs: 60_000, ...(media ? { media } : {}) };
  return { call: new EngineCall(wire, options), sent };
}

const prepared = (wanted: WantedMedia[] = []): FromEngine => ({ type: 'prepared', id: 'a', promptTokens: 3, wanted });

test('says how far the engine process has come with a request', async () => {
  const opened = Promise.withResolvers<Work>();
  const { call, sent } = callWith({ media: { open: () => opened.promise, prepare: async () => [] } });
  const progress = [call.progress];
  const counted = call.prepare();
  progress.push(call.progress);
  opened.resolve(work);
  await opened.promise;
  progress.push(call.progress);
  call.onMessage(prepared());
  await counted;
  progress.push(call.progress);
  const replies = call.run();
  const first = replies.next();
  progress.push(call.progress);
  call.onMessage({ type: 'queued', id: 'a' });
  await first;
  progress.push(call.progress);
  call.onMessage({ type: 'content', id: 'a', text: 'x' });
  await replies.next();
  progress.push(call.progress);
  await replies.return(undefined);
  expect(progress).toEqual([
    'This request had not reached it.',
    'This request had not reached it.',
    'It had not finished checking this request.',
    'It had checked this request, but not begun to answer it.',
    'This request was in its queue or being answered.',
    'This request was in its queue or being answered.',
    'It was answering this request.',
  ]);
  expect(sent).toEqual(['prepare', 'run', 'cancel']);
});

test('a request for media that the call lacks is a fault to report', async () => {
  const { call } = callWith();
  const counted = call.prepare();
  const plan = { filter: 'box' as const, sizes: [], rows: 0, columns: 0, tile: { width: 1, height: 1 } };
  call.onMessage(prepared([{ sha256: 'a'.repeat(64), detail: 'low', plan }]));
  await counted;
  await expect(call.run().next()).rejects.toMatchObject({
    code: 'engine_failed',
    message: expect.stringMatching(/ a request that has none\. This is a fault in Assay\. Try again; .*x-request-id/u),
  });
});
