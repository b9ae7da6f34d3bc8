import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { MessageParts } from '../../protocol/message-parts.ts';
import type { ToEngine, WholeMessage } from '../../protocol/messages.ts';
import { CallsInFlight } from './calls-in-flight.ts';

/** Returns calls to a process that reads its messages only when told to, and what it was sent. */
function calls() {
  const sent: string[] = [];
  const unread: (() => void)[] = [];
  const parts = new MessageParts<WholeMessage>();
  const child = {
    send(message: ToEngine, written: () => void = () => {}) {
      const whole = message.type === 'part' ? parts.add(message) : message;
      sent.push(whole ? `${whole.type} ${/"content":"(\w+)/.exec(JSON.stringify(whole))?.[1]}` : 'part');
      unread.push(written);
    },
  };
  const flight = new CallsInFlight(undefined, () => {});
  return {
    flight,
    sent,
    /** Starts a request of a caller with the initial of its prompt, which is a name and up to this many characters. */
    async begin(name: string, characters: number, signal = new AbortController().signal) {
      const request = { model: 'a/b', messages: [{ role: 'user' as const, content: name.padEnd(characters) }] };
      const options = { work: { kind: 'chat' as const, request: request as never }, signal, timeoutMs: 60_000 };
      const call = await flight.open({ ...options, caller: { caller: name.slice(0, 1) } }, async () => child);
      return call.prepare();
    },
    /** Lets the process read what it was sent. */
    async read() {
      for (const written of unread.splice(0)) written();
      await setImmediate();
    },
  };
}

test('a long message is sent in parts, in turns between callers; short ones pass them', async () => {
  const { sent, begin, read } = calls();
  for (const [name, characters] of [
    ['a1', 150_000],
    ['a2', 70_000],
    ['b1', 70_000],
  ] as const)
    void begin(name, characters).catch(() => {});
  await setImmediate();
  void begin('b2', 100).catch(() => {});
  await setImmediate();
  expect(sent).toEqual(['part', 'prepare b2']);
  for (let i = 0; i < 7; i++) await read();
  expect(sent.slice(2).filter((one) => one !== 'part')).toEqual(['prepare b1', 'prepare a2', 'prepare a1']);
  expect(sent).toHaveLength(8);
});

test.each([
  ['before its first part', 150_000, []],
  ['after it', 0, ['part', 'cancel undefined']],
])('a request that ends %s is sent no further', async (_, ahead, expected) => {
  const { flight, sent, begin, read } = calls();
  const leaving = new AbortController();
  if (ahead > 0) void begin('a1', ahead).catch(() => {});
  await setImmediate();
  const left = begin('a2', 150_000, leaving.signal);
  await setImmediate();
  leaving.abort();
  await expect(left).rejects.toMatchObject({ code: 'internal_error' });
  // The process reports the end of one whose parts it has.
  expect(flight.admitted).toBe(1);
  for (let i = 0; i < 5; i++) await read();
  expect(sent).toEqual(ahead > 0 ? ['part', 'cancel undefined', 'part', 'prepare a1'] : expected);
});
