import { parseArgs } from 'node:util';
import { at } from '../../lib/at.ts';
import type { ShapeName } from '../models/shapes.ts';
import { installPeers } from '../peers/install.ts';
import { median, type Report } from '../report.ts';
import type { Cost } from '../systems/measure.ts';
import { type RunningSystem, startSystem, THREADS } from '../systems/start.ts';
import type { CrowdRequest } from '../systems/system.ts';
import { chats, mixed } from './requests.ts';

const HELP = `npm run bench -- crowd [--weights=int8,int4] [--slots=1,8] [--rounds=3] [--quick]

Unrelated requests that come at once: 1 to 16 chats, and a mix of decide, extract and chat. Assay with one slot (a request a run) and with
several (continuous batching), and node-llama-cpp, each in a process of its own, in turn. Then the time between two tokens of seven chats,
alone and while a prompt of 4,096 tokens is read.`;

interface Measured {
  name: string;
  system: RunningSystem;
  /** True for Assay with one slot and for other programs, whose gaps between tokens are not measured. */
  single: boolean;
}

export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      weights: { type: 'string', default: 'int8,int4' },
      slots: { type: 'string', default: '1,8' },
      rounds: { type: 'string' },
      quick: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(HELP);
  installPeers();
  const shape = values.quick ? 'tiny' : 'qwen2.5-0.5b';
  const rounds = Number(values.rounds ?? (values.quick ? 1 : 3));
  for (const weights of values.weights.split(',').map(weightsOf)) {
    const systems = await startAll(shape, weights, values.slots.split(',').map(Number));
    try {
      for (const { system } of systems) await system.crowd({ requests: chats(2, 0) }); // warm up
      for (const { name, requests } of CASES) await reportCase(report, systems, name, requests, rounds);
      for (const { name, system, single } of systems) if (!single) await reportGaps(report, name, system);
    } finally {
      for (const { system } of systems) system.close();
    }
  }
}

function weightsOf(text: string): 'int8' | 'int4' {
  if (text === 'int8' || text === 'int4') return text;
  throw new Error(`There are no weights ${text}.\n${HELP}`);
}

async function startAll(shape: ShapeName, weights: 'int8' | 'int4', slots: readonly number[]): Promise<Measured[]> {
  const systems: Measured[] = [];
  // Starts one system after the other, because the first start compiles the models.
  for (const count of slots) {
    const system = await startSystem('assay', { shape, weights, threads: THREADS, slots: count });
    systems.push({
      name: `assay ${weights}, ${count === 1 ? 'one slot' : `${count} slots`}`,
      system,
      single: count === 1,
    });
  }
  const llama = await startSystem('node-llama-cpp', { shape, weights, threads: THREADS });
  systems.push({ name: `node-llama-cpp, ${weights === 'int8' ? 'Q8_0' : 'Q4_0'}`, system: llama, single: true });
  return systems;
}

/** Lists the sets of requests that are sent at once. A new `seed` gives new texts. */
const CASES: readonly { name: string; requests(seed: number): CrowdRequest[] }[] = [
  ...[1, 2, 4, 8, 16].map((count) => ({
    name: count === 1 ? '1 chat' : `${count} chats`,
    requests: (seed: number) => chats(count, seed),
  })),
  { name: '20 mixed requests', requests: (seed: number) => mixed(20, seed) },
];

/** Measures the systems in turn and reports the medians of the rounds. */
async function reportCase(
  report: Report,
  systems: readonly Measured[],
  name: string,
  requests: (seed: number) => CrowdRequest[],
  rounds: number,
): Promise<void> {
  const costs = systems.map((): Cost[] => []);
  for (let round = 1; round <= rounds; round++) {
    for (const [index, { system }] of systems.entries()) {
      at(costs, index).push(await system.crowd({ requests: requests(round) }));
    }
  }
  for (const [index, { name: system }] of systems.entries()) {
    const say = (metric: string, of: (cost: Cost) => number) =>
      report({ system, case: name, metric, value: median(at(costs, index).map(of)) / 1000, unit: 's' });
    say('wall time', ({ ms }) => ms);
    say('processor time', ({ cpuMs }) => cpuMs);
  }
}

/** Reports the time between two tokens of a chat for seven chats, alone and while a long prompt is read. */
async function reportGaps(report: Report, system: string, running: RunningSystem): Promise<void> {
  const { alone, beside } = await running.gaps({ chats: 7, prompt: 4096 });
  for (const [name, gaps] of [
    ['7 chats', alone] as const,
    ['7 chats beside a prompt of 4,096 tokens', beside] as const,
  ]) {
    report({ system, case: name, metric: 'gap between tokens, p50', value: gaps.p50, unit: 'ms' });
    report({ system, case: name, metric: 'gap between tokens, p99', value: gaps.p99, unit: 'ms' });
    if (gaps.promptMs > 0)
      report({ system, case: name, metric: 'until the prompt is read', value: gaps.promptMs / 1000, unit: 's' });
  }
}
