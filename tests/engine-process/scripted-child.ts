import { setTimeout as delay } from 'node:timers/promises';
import { AssayError } from '../../lib/errors.ts';
import { wrongNumbers } from '../../runtime/engine/model.ts';
import { endWithParent } from '../../runtime/process/end-with-parent.ts';
import { NO_LOAD } from '../../runtime/protocol/messages.ts';
import type { Channel, PreparedWork, ServedModel } from '../../runtime/worker/serve.ts';
import { serveMessages } from '../../runtime/worker/serve.ts';

/*
 * An engine process whose model does what the task's question says: it crashes, hangs, allocates, or sends nonsense at
 * the moment that a test chooses. Everything around it (messages, loop, heartbeat) is real.
 */

const METRICS = {
  queue_ms: 0,
  prompt_ms: 0,
  time_to_first_token_ms: 0,
  generation_ms: 0,
  total_ms: 0,
  prompt_tokens: 3,
  cached_tokens: 0,
  completion_tokens: 1,
  prompt_tokens_per_second: null,
  tokens_per_second: null,
  device: 'CPU' as const,
};
const hoard: Uint8Array[] = [];

function prepare(text: string): PreparedWork {
  if (text === 'too long') throw new AssayError('input_too_long', 'The input has 9 tokens, and 8 are allowed.');
  if (text === 'hang while preparing') for (;;);
  // Eight megabytes at a time, until the heap is full.
  for (const values: unknown[] = []; text === 'hoard values'; ) values.push(new Array(1_000_000).fill(values));
  return {
    promptTokens: 3,
    async run({ reply, signal }) {
      reply({ type: 'queued' });
      if (text === 'crash') process.kill(process.pid, 'SIGSEGV');
      if (text === 'exit') process.exit(3);
      if (text === 'hang') for (;;);
      if (text === 'nonsense') process.send?.({ type: 'finished', id: 5 });
      // No more than a gigabyte: the supervisor may be slow.
      while (text === 'grow') {
        if (hoard.length < 32) hoard.push(new Uint8Array(32 * 1024 * 1024).fill(1));
        await delay(5);
      }
      if (text.startsWith('wait')) await delay(Number(text.slice(5)), null, { signal });
      const value = text === 'environment' ? JSON.stringify(process.env) : text;
      reply({ type: 'answers', answers: [{ name: 'a', json: `{"value":${JSON.stringify(value)}}` }], cut: [] });
      reply({ type: 'finished', reason: 'stop', usage: { promptTokens: 3, completionTokens: 1 }, metrics: METRICS });
    },
  };
}

endWithParent();
serveMessages(
  {
    async load({ model, dir }, onPhase): Promise<ServedModel> {
      if (dir === '/hang') for (;;);
      if (dir === '/hang in text') {
        onPhase('text');
        for (;;);
      }
      if (dir === '/starved') starve(2_000);
      if (dir === '/broken') throw new AssayError('engine_failed', 'The graph is damaged.');
      if (dir === '/wrong') throw wrongNumbers('int8', 0.4, 0.2);
      if (dir === '/crash') process.exit(1);
      if (dir.startsWith('/slow')) await delay(200);
      return {
        info: { model, device: 'CPU', maxPromptLen: 8, contextLength: 16 },
        // biome-ignore lint/correctness/useYield: its requests have one part
        *prepare(work) {
          return prepare(work.kind === 'tasks' ? questionOf(work.batch.tasks[0]) : '');
        },
        load: () => NO_LOAD,
      };
    },
    describe() {
      throw new AssayError('engine_failed', 'Nothing is read here.');
    },
    async compile({ source }, onProgress) {
      onProgress({ step: 'weights', done: 1, total: 2 });
      if (source === '/crash') process.exit(1);
      if (source === '/slow') await delay(60_000);
      onProgress({ step: 'weights', done: 2, total: 2 });
      const choice = { reason: 'scripted', kernels: '', measured: [], errorLimit: null };
      return { device: 'CPU', maxPromptLen: 8, precision: 'int8', choice };
    },
  },
  process as Channel,
);

/** Works for 10 ms out of every 100, as a process that gets a tenth of a processor, without sending a message. */
function starve(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end) {
    const { user, system } = process.cpuUsage();
    for (let used = 0; used < 10_000; ) {
      const now = process.cpuUsage();
      used = now.user + now.system - user - system;
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 90);
  }
}

function questionOf(task: { type: string; question?: string } | undefined): string {
  return task?.question ?? '';
}
