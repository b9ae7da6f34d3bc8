import type { Engine } from '../../runtime/engine/engine.ts';
import type { JobSpec } from '../../runtime/engine/job-spec.ts';
import { chat } from '../branches/workload.ts';
import type { Gaps, GapsWork } from '../systems/system.ts';

/** Number of engine steps that are measured without a long prompt. */
const STEPS = 60;

/** Measures the time between two tokens of several chats, alone or, with `beside`, while a long prompt is read. */
export async function gapsOf(engine: Engine, { chats, prompt }: GapsWork, beside: boolean): Promise<Gaps> {
  const gaps: number[] = [];
  const stop = new AbortController();
  const running = Array.from({ length: chats }, (_, i) =>
    engine.submit(timed(chat(128, 400, 7000 + i), gaps), stop.signal).catch(() => null),
  );
  // Runs the engine until all chats decode.
  while (gaps.length < chats * 4) await engine.step();
  gaps.length = 0;
  const began = performance.now();
  let promptMs = 0;
  const long = beside
    ? engine.submit(chat(prompt, 1, 7777)).then(() => {
        promptMs = performance.now() - began;
      })
    : null;
  for (let steps = 0; promptMs === 0 && (beside || steps < STEPS) && (await engine.step()); steps++);
  stop.abort(new Error('measured'));
  while (await engine.step());
  await Promise.all([...running, long]);
  gaps.sort((a, b) => a - b);
  const share = (part: number) => gaps[Math.min(gaps.length - 1, Math.floor(part * gaps.length))] ?? 0;
  return { p50: share(0.5), p99: share(0.99), promptMs };
}

function timed(job: JobSpec, gaps: number[]): JobSpec {
  let last: number | null = null;
  return {
    ...job,
    onToken() {
      const now = performance.now();
      if (last !== null) gaps.push(now - last);
      last = now;
      return undefined;
    },
  };
}
