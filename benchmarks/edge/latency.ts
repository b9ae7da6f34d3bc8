import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { BOX_KEY } from '../../tests/edge/box.ts';
import { startEdge } from '../../tests/edge/edge.ts';
import { bundle, runWorkers } from '../../tests/edge/workerd.ts';
import { PASS_THROUGH } from './pass-through.ts';

// node benchmarks/edge/latency.ts [rounds]: what an edge adds to a call, beside a Worker that only passes it on. The three ways
// take turns, one request at a time, so that each sees the same machine.

const rounds = Number(process.argv[2] ?? 1_000);
const WARM_UP = 200;

const child = spawn(process.execPath, [fileURLToPath(new URL('box-process.ts', import.meta.url))], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
const [url] = (await once(createInterface(child.stdout), 'line')) as [string];
const edge = await startEdge(await bundle(), [{ name: 'npu-1', url }], {
  keys: { [BOX_KEY]: {}, limited: { requestsPerMinute: 1e9 } },
});
const worker = await runWorkers([{ name: 'pass-through', script: PASS_THROUGH, bindings: { BOX: url } }]);

const ways = {
  direct: { url, key: BOX_KEY },
  'pass-through': { url: worker.urls[0]!, key: BOX_KEY },
  edge: { url: edge.urls[0]!, key: BOX_KEY },
  'edge, key with a quota': { url: edge.urls[0]!, key: 'limited' },
};

try {
  for (const [name, characters] of [
    ['1 KiB of context, 1 task', 1_024, 1],
    ['1 KiB of context, 16 tasks', 1_024, 16],
    ['64 KiB of context, 16 tasks', 65_536, 16],
  ] as const) {
    console.log(`\n${name}`);
    await measure(body(characters, name.includes('16 tasks') ? 16 : 1));
  }
} finally {
  await Promise.all([edge.close(), worker.close()]);
  child.kill();
}

function body(characters: number, tasks: number): string {
  return JSON.stringify({
    model: 'assay/starter',
    context: 'The parcel came two weeks late. '.repeat(characters / 32),
    tasks: Array.from({ length: tasks }, (_, i) => ({
      type: 'decide',
      name: `q${i}`,
      question: `Is statement ${i} true?`,
      options: ['yes', 'no'],
    })),
  });
}

async function measure(text: string): Promise<void> {
  const times = new Map(Object.keys(ways).map((way) => [way, [] as number[]]));
  for (let i = 0; i < WARM_UP + rounds; i++) {
    for (const [way, { url, key }] of Object.entries(ways)) {
      const ms = await ask(url, key, text);
      if (i >= WARM_UP) times.get(way)!.push(ms);
    }
  }
  const direct = quantile(times.get('direct')!, 0.5);
  const passed = quantile(times.get('pass-through')!, 0.5);
  for (const [way, all] of times) {
    const median = quantile(all, 0.5);
    const added = median - direct;
    const ratios = `${(median / passed).toFixed(2)} of pass-through, added ${(added / (passed - direct)).toFixed(2)} of its`;
    const line = `median ${median.toFixed(2)} ms  p99 ${quantile(all, 0.99).toFixed(2)} ms  added ${added.toFixed(2)} ms`;
    console.log(`  ${way.padEnd(24)} ${line}  ${ratios}`);
  }
}

async function ask(url: string, key: string, text: string): Promise<number> {
  const begin = performance.now();
  const response = await fetch(`${url}/v1/tasks`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: text,
  });
  await response.arrayBuffer();
  if (!response.ok) throw new Error(`status ${response.status}`);
  return performance.now() - begin;
}

function quantile(times: readonly number[], share: number): number {
  return times.toSorted((a, b) => a - b)[Math.floor(share * (times.length - 1))]!;
}
