import { parseArgs } from 'node:util';
import { at } from '../../lib/at.ts';
import { installPeers } from '../peers/install.ts';
import { median, type Report } from '../report.ts';
import type { Cost } from '../systems/measure.ts';
import { type RunningSystem, startSystem, THREADS } from '../systems/start.ts';
import { CONTENDERS, type Contender, DECIDERS } from './contenders.ts';
import { W } from './tokens.ts';

const HELP = `npm run bench -- branches [--n=1,4,16,64] [--rounds=3] [--systems=assay,llama] [--parts=tasks,decide] [--quick]

Workload W (a context of 1,024 tokens, n tasks of 24 + 6 tokens) on models of one shape and random weights, each system in a process of
its own, in turn. --systems: those whose ids begin so. --quick: a tiny shape, to see that it runs.
Ids: ${[...new Set([...CONTENDERS, ...DECIDERS].map(({ id }) => id))].join(', ')}`;

/** Maps each contender to its costs, one for each round. */
type Costs = Map<Contender, Cost[]>;

export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      n: { type: 'string' },
      rounds: { type: 'string' },
      systems: { type: 'string', default: '' },
      parts: { type: 'string', default: 'tasks,decide' },
      quick: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(HELP);
  const counts = (values.n ?? (values.quick ? '1,4' : '1,4,16,64')).split(',').map(Number);
  const rounds = Number(values.rounds ?? (values.quick ? 1 : 3));
  const wanted = values.systems.split(',');
  const pick = (all: readonly Contender[]) => all.filter(({ id }) => wanted.some((begin) => id.startsWith(begin)));
  const shape = values.quick ? 'tiny' : 'qwen2.5-0.5b';
  const parts = values.parts.split(',');
  const [contenders, deciders] = [
    parts.includes('tasks') ? pick(CONTENDERS) : [],
    parts.includes('decide') ? pick(DECIDERS) : [],
  ];
  if (contenders.length + deciders.length === 0) throw new Error(`Nothing to measure.\n${HELP}`);
  if ([...contenders, ...deciders].some(({ program }) => program !== 'assay')) installPeers();

  await withSystems(contenders, shape, async (systems) => {
    for (const count of counts) await measureTasks(systems, count, rounds, report);
  });
  await withSystems(deciders, shape, async (systems) => {
    for (const count of counts) await measureDecide(systems, count, rounds, report);
  });
}

async function withSystems(
  contenders: readonly Contender[],
  shape: Parameters<typeof startSystem>[1]['shape'],
  work: (systems: Map<Contender, RunningSystem>) => Promise<void>,
): Promise<void> {
  const systems = new Map<Contender, RunningSystem>();
  try {
    for (const contender of contenders) {
      const { program, weights, mode } = contender;
      const system = await startSystem(program, { shape, weights, threads: THREADS, ...(mode ? { mode } : {}) });
      systems.set(contender, system);
      await system.prefill({ tokens: 64, seed: 0 }); // warm up
    }
    await work(systems);
  } finally {
    for (const system of systems.values()) system.close();
  }
}

async function measureTasks(systems: Map<Contender, RunningSystem>, count: number, rounds: number, report: Report) {
  const cold: Costs = new Map();
  const cached: Costs = new Map();
  for (let round = 0; round < rounds; round++) {
    for (const [contender, system] of systems) {
      if (count > (contender.most ?? count)) continue;
      const costs = await system.branches({ tasks: count, seed: 1 + 10 * round + 1000 * count });
      append(cold, contender, costs.cold);
      append(cached, contender, costs.cached);
    }
  }
  const tasks = count === 1 ? '1 task' : `${count} tasks`;
  reportCosts(`${tasks}, cold`, cold, report);
  reportCosts(`${tasks}, context cached`, cached, report);
}

/**
 * Measures requests with decide tasks. Assay's engine gets prompts with as many tokens as node-llama-cpp counted for
 * its own prompts, split in the same way between context and questions. So both compute the same amount.
 */
async function measureDecide(systems: Map<Contender, RunningSystem>, count: number, rounds: number, report: Report) {
  const costs: Costs = new Map();
  let question: number = W.task;
  for (let round = 0; round < rounds; round++) {
    for (const [contender, system] of systems) {
      const work = { questions: count, seed: 1 + 10 * round + 1000 * count, context: W.context, question };
      const cost = await system.choices(work);
      if (contender.program !== 'assay') question = Math.round((cost.promptTokens - W.context) / count);
      append(costs, contender, cost);
    }
  }
  const what = `${count === 1 ? '1 question' : `${count} questions`}, cold`;
  if ([...systems.keys()].some(({ program }) => program !== 'assay')) {
    report({ system: 'node-llama-cpp', case: what, metric: 'tokens of a question', value: question, unit: 'tokens' });
  }
  reportCosts(what, costs, report);
}

function append(costs: Costs, contender: Contender, cost: Cost): void {
  costs.set(contender, [...(costs.get(contender) ?? []), cost]);
}

function reportCosts(what: string, costs: Costs, report: Report): void {
  for (const [contender, all] of costs) {
    const times = all.map(({ ms }) => ms);
    const say = (metric: string, value: number, unit: string) =>
      report({ system: contender.label, case: what, metric, value, unit });
    say('median', median(times), 'ms');
    say('least', Math.min(...times), 'ms');
    say('most', Math.max(...times), 'ms');
    say('processor time, median', median(all.map(({ cpuMs }) => cpuMs)), 'ms');
    if (contender.program === 'assay') compare(contender, times);
  }

  /** Reports the time of each peer with equally many bits, divided by that of `ours`: the median of the rounds. */
  function compare(ours: Contender, times: readonly number[]): void {
    for (const [peer, all] of costs) {
      if (peer.program === 'assay' || peer.weights !== ours.weights) continue;
      const ratios = times.map((ms, round) => at(all, round).ms / ms);
      report({ system: `${peer.label} / Assay`, case: what, metric: 'time ratio', value: median(ratios), unit: 'x' });
    }
  }
}
