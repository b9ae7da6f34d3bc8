import { cpSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../../runtime/engine/random.ts';
import { HubServer } from '../hub/hub-server.ts';
import type { HubRepository } from '../hub/repository.ts';
import { fixtureModel } from '../registry/machine.ts';
import { problemsOf } from './check-answer.ts';
import { inject, possibleFaults, prepareMachine } from './faults.ts';
import { imageOrAudio } from './media-operations.ts';
import { nextOperation } from './operations.ts';
import { describePlan, type Plan, planOf } from './plan.ts';
import { AUDIO, STARTER, TINY, VISION } from './request.ts';
import { mannerOf, POLITE, send } from './send.ts';
import { halfFiles } from './store.ts';
import { startTarget, type Target } from './target.ts';

export interface RunOptions {
  seconds: number;
  /** Milliseconds that stopped processes stay so. Default: more than those after which the server calls them silent. */
  stopMs?: number;
  /**
   * Milliseconds in which a killed engine has to answer again. On a busy machine, where the server starts slowly, it
   * has twice the time of that start.
   */
  recoveryMs: number;
  /** Folder with a compiled starter, so that no run has to compile it. */
  template: string;
}

export interface RunReport {
  plan: string;
  /** Ends of requests: statuses, `left`, and the codes of broken connections. */
  outcomes: Record<string, number>;
  missing: Record<string, string>;
  /** Milliseconds from the start of the server to a loaded model, and from a kill to the next answer. */
  startMs: number;
  recoveryMs: number;
  violations: string[];
}

/** Gauges that must return to their start, and how much more they may be. */
const GAUGES = {
  assay_requests_running: 0,
  assay_requests_waiting: 0,
  assay_requests_admitted: 0,
  'assay_kv_cells{state="running"}': 0,
  assay_request_body_bytes: 0,
  process_open_fds: 2,
};
/** Milliseconds for the gauges: connections that were left have to be noticed. */
const SETTLE_MS = 45_000;
const DECIDE = {
  method: 'POST',
  path: '/decide',
  body: { model: STARTER, context: 'The mug is broken.', question: 'Is it?', options: ['yes', 'no'] },
} as const;

const LONG_CHAT = {
  method: 'POST',
  path: '/v1/chat/completions',
  body: {
    model: STARTER,
    messages: [{ role: 'user', content: 'The mug is broken. Say what happened.' }],
    stream: true,
  },
} as const;
const STOP_MS = 8_000;
/** Callers that leave at the end of a run, and the longest time that they stay. */
const LEAVERS = 12;
const LEAVE_MS = 2_000;

/** Runs one seed against a new server. */
export async function runSeed(seed: number, options: RunOptions): Promise<RunReport> {
  const { seconds, recoveryMs, template, stopMs = STOP_MS } = options;
  const plan = planOf(seed, seconds, stopMs);
  const machine = prepareMachine(mkdtempSync(join(tmpdir(), 'assay-chaos-')));
  const model = await fixtureModel('optimum/qwen3', TINY);
  const hub = await HubServer.start(model, ...(await mediaModels()));
  const run: Run = { plan, violations: [], outcomes: {} };
  try {
    cpSync(template, machine.base, { recursive: true });
    const begin = performance.now();
    const target = await startTarget({ hub, base: machine.base, env: machine.env, ...plan });
    const startMs = Math.round(performance.now() - begin);
    try {
      await call(target, DECIDE);
      // Opens what is opened once: the connections to the hub, the files of the store.
      await call(target, { method: 'POST', path: '/download', body: { model: TINY } });
      await serve(target, plan.model);
      if (plan.secondModel) await serve(target, plan.secondModel, { keep_others: true });
      const keys = [target.key, ...(plan.twoKeys ? [target.addKey('second')] : [])];
      const before = await settled(target, null);
      const faults = possibleFaults(plan, machine).map(async ({ atMs, fault, forMs }) => {
        await sleep(atMs);
        await inject(fault, forMs, { target, machine, hub });
      });
      await Promise.all([...faults, ...clients(run, target, keys)]);
      run.violations.push(...halfFiles(machine.base, model).map((path) => `half in the store: ${path}`));
      await proveWhole(run, target, model, machine.base);
      await leaveEarly(plan, target);
      // Before the engine process is killed, because what it leaked would be lost with it.
      await proveSettled(run, target, before);
      const recovery = await recover(run, target, Math.max(recoveryMs, 2 * startMs));
      await proveSettled(run, target, before);
      const code = await target.stop();
      if (code !== 0) run.violations.push(`the server ended with code ${code}`);
      return { ...run, plan: describePlan(plan), missing: machine.missing, startMs, recoveryMs: recovery };
    } finally {
      target.kill();
    }
  } finally {
    await hub.stop();
    machine.remove();
  }
}

/** Compiles the models of the callers once, into a home that every run begins with a copy of. */
export async function prepareTemplate(template: string): Promise<void> {
  const hub = await HubServer.start(...(await mediaModels()));
  try {
    const target = await startTarget({ hub, base: template, descriptors: null, logRead: true, env: {} });
    try {
      for (const model of [VISION, AUDIO, STARTER]) await serve(target, model);
      await target.stop();
    } finally {
      target.kill();
    }
  } finally {
    await hub.stop();
  }
}

const mediaModels = () =>
  Promise.all([fixtureModel('../media/smolvlm', VISION), fixtureModel('../media/voxtral', AUDIO)]);

/** Downloads and loads a model, and asks it about an image or a recording, which starts the media process. */
async function serve(target: Target, model: string, others: { keep_others?: true } = {}): Promise<void> {
  const body = { model };
  const operations = [
    ...(model === STARTER ? [] : [{ method: 'POST', path: '/download', body } as const]),
    { method: 'POST', path: '/load', body: { ...body, ...others } } as const,
    model === STARTER ? DECIDE : imageOrAudio(model),
  ];
  for (const operation of operations) {
    const { status, text } = await call(target, operation);
    if (status !== 200) throw new Error(`${operation.path} with ${model} answers ${status}: ${text.slice(0, 300)}`);
  }
}

interface Run {
  plan: Plan;
  violations: string[];
  outcomes: Record<string, number>;
}

/** Lists the codes that a client sees when the system has ended its connection: while it reads, and while it writes. */
const ENDED = ['ECONNRESET', 'EPIPE'];

/**
 * Starts the clients; the first one changes models. Every other one uses the second key, and two of four ask the second
 * model.
 */
function clients({ plan, violations, outcomes }: Run, target: Target, keys: readonly string[]): Promise<void>[] {
  const end = performance.now() + plan.loadMs;
  const stoppedMs = plan.faults.reduce((sum, { fault, forMs }) => sum + (fault === 'stop' ? forMs : 0), 0);
  const patienceMs = POLITE.patienceMs + stoppedMs;
  return Array.from({ length: plan.clients }, async (_, client) => {
    const random = new Random(plan.seed * 1000 + client);
    const headers = { authorization: `Bearer ${keys[client % keys.length]}` };
    const model = client % 4 > 1 ? (plan.secondModel ?? plan.model) : plan.model;
    while (performance.now() < end) {
      const operation = nextOperation(random, model, client === 0);
      const outcome = await send(target.url, headers, operation, { ...mannerOf(random), patienceMs });
      const name = outcome.kind === 'answered' ? outcome.status : outcome.kind === 'left' ? 'left' : outcome.reason;
      outcomes[name] = (outcomes[name] ?? 0) + 1;
      const at = `${operation.method} ${operation.path} (${name})`;
      if (outcome.kind === 'answered')
        violations.push(...problemsOf(operation, outcome).map((problem) => `${at}: ${problem}`));
      // Without a free descriptor the system ends the connection before the server sees a request.
      else if (outcome.kind === 'broken' && !(plan.descriptors !== null && ENDED.includes(outcome.reason)))
        violations.push(`${at}: no answer`);
      if (client === 0) await sleep(random.uniform() * 500);
    }
  });
}

async function call(target: Target, operation: Parameters<typeof send>[2]) {
  const outcome = await send(target.url, target.headers, operation);
  return outcome.kind === 'answered' ? outcome : { status: 0, text: JSON.stringify(outcome) };
}

/**
 * Sends an operation again while it is refused because another one changes the model: one whose caller has left may
 * still run when the load ends.
 */
async function callWhenFree(target: Target, operation: Parameters<typeof send>[2]) {
  const until = performance.now() + SETTLE_MS;
  let answer = await call(target, operation);
  while (answer.text.includes('"operation_in_progress"') && performance.now() < until) {
    await sleep(200);
    answer = await call(target, operation);
  }
  return answer;
}

/** Checks that the store still works as a whole: what was interrupted resumes. */
async function proveWhole(
  { plan, violations }: Run,
  target: Target,
  model: HubRepository,
  base: string,
): Promise<void> {
  for (const operation of [
    { method: 'POST', path: '/load', body: { model: plan.model } },
    plan.model === STARTER ? DECIDE : imageOrAudio(plan.model),
    { method: 'POST', path: '/download', body: { model: TINY } },
    { method: 'POST', path: '/load', body: { model: TINY } },
    { method: 'POST', path: '/decide', body: { ...DECIDE.body, model: TINY } },
    // A model that is in memory already stays beside the others when it is loaded; each has descriptors of its own.
    ...[TINY, VISION, AUDIO].map((model) => ({ method: 'POST', path: '/unload', body: { model } }) as const),
    { method: 'POST', path: '/load', body: { model: STARTER } },
    DECIDE,
  ] as const) {
    const { status, text } = await callWhenFree(target, operation);
    if (status !== 200) violations.push(`after the faults ${operation.path} answers ${status}: ${text.slice(0, 300)}`);
  }
  violations.push(...halfFiles(base, model).map((path) => `half in the store: ${path}`));
}

/** Sends requests whose callers leave while the engine process works on them. */
async function leaveEarly({ seed }: Plan, target: Target): Promise<void> {
  const random = new Random(seed);
  const leavers = Array.from({ length: LEAVERS }, () => {
    const leaveMs = Math.round(random.uniform() * LEAVE_MS);
    return send(target.url, target.headers, LONG_CHAT, { ...POLITE, leaveMs });
  });
  await Promise.all(leavers);
}

/** Kills the engine process and returns the milliseconds until a request is answered again. */
async function recover(run: Run, target: Target, mostMs: number): Promise<number> {
  await inject('kill', 0, { target } as Parameters<typeof inject>[2]);
  const begin = performance.now();
  let answer = { status: 0, text: '' };
  while (answer.status !== 200 && performance.now() - begin < 3 * mostMs) answer = await call(target, DECIDE);
  const ms = Math.round(performance.now() - begin);
  if (ms > mostMs) run.violations.push(`recovery took ${ms} ms: ${answer.text.slice(0, 200)}`);
  return ms;
}

/** Waits until the gauges are at most `most` (null: until they stand still), and returns them. */
async function settled(target: Target, most: Map<string, number> | null): Promise<Map<string, number>> {
  const until = performance.now() + SETTLE_MS;
  const read = async () => new Map([...(await target.gauges())].filter(([name]) => name in GAUGES));
  let now = await read();
  const isSettled = (before: Map<string, number>) =>
    Object.entries(GAUGES).every(([name, more]) => {
      const value = now.get(name) ?? Number.NaN;
      return most === null ? value === before.get(name) : value <= (most.get(name) ?? 0) + more;
    });
  for (let before = new Map<string, number>(); !isSettled(before) && performance.now() < until; ) {
    before = now;
    // Longer than a heartbeat of the engine process.
    await sleep(700);
    now = await read();
  }
  return now;
}

async function proveSettled(run: Run, target: Target, before: Map<string, number>): Promise<void> {
  const after = await settled(target, before);
  for (const [name, more] of Object.entries(GAUGES)) {
    const [was, is] = [before.get(name), after.get(name)];
    if (was === undefined || is === undefined) run.violations.push(`${name} is not in /metrics`);
    else if (is > was + more) run.violations.push(`${name} was ${was} and is ${is}`);
  }
}
