import { expect, test } from 'vitest';
import { FairShares } from '../../../lib/limits/fair-shares.ts';
import type { Job } from '../job.ts';
import { BatchPlanner, type MeasuredRun, PromptPace } from './batch-planner.ts';
import { defaultLimits } from './limits.ts';

const decode = (ms: number, cells = 0): MeasuredRun => ({ ms, decodes: true, tokens: 1, promptTokens: 0, cells });
const mixed = (ms: number, promptTokens: number): MeasuredRun => ({
  ...decode(ms),
  tokens: promptTokens + 1,
  promptTokens,
});
const prompt = (ms: number, cells = 0): MeasuredRun => ({
  ...{ ms, cells, decodes: false },
  ...{ tokens: 256, promptTokens: 256 },
});

test.each<[string, MeasuredRun[], number]>([
  ['nothing measured', [], Number.POSITIVE_INFINITY],
  ['decodes only', [decode(40)], Number.POSITIVE_INFINITY],
  ['no usual gap yet', [mixed(100, 32)], Number.POSITIVE_INFINITY],
  ['two milliseconds a token', [decode(40), mixed(104, 32)], 14],
  ['prompts without decodes do not count', [decode(40), prompt(900), mixed(104, 32)], 14],
  ['a token that costs more than all the time there is', [decode(10), mixed(330, 32)], 8],
  ['a token that costs nothing', [decode(40), mixed(38, 32)], Number.POSITIVE_INFINITY],
])('%s', (_, runs, tokens) => {
  const pace = new PromptPace();
  for (const run of runs) pace.add(run);
  expect(pace.tokens).toBe(tokens);
});

/** A job after so many cells, with so many prompt tokens to read. */
const after = (cells: number, unread: number) => ({ sequence: { length: cells } as Job['sequence'], unread });
const [short, long] = [1024, 1025];

test.each<[string, MeasuredRun[], [short: number, long: number]]>([
  ['nothing measured', [], [16, 32]],
  ['a slow machine', [prompt(500)], [16, 32]],
  ['a fast machine', [prompt(32)], [128, 200]],
  ['runs that also decode do not count', [prompt(32), mixed(900, 256)], [128, 200]],
  ['nor those of few tokens', [prompt(32), { ...prompt(30), promptTokens: 2 }], [128, 200]],
])('prompt tokens while several callers have jobs: %s', (_, runs, tokens) => {
  const pace = new PromptPace();
  for (const run of runs) pace.add(run);
  expect([short, long].map((unread) => pace.shared(after(0, unread)))).toEqual(tokens);
});

test.each<[string, MeasuredRun[], [short: number, long: number, first: number]]>([
  ['nothing measured', [], [16, 32, 64]],
  ['tokens cost the same everywhere', [prompt(500), prompt(500, 4000)], [16, 32, 64]],
  ['a slow machine', [prompt(256), prompt(1280, 4000)], [8, 8, 12]],
  ['a fast machine', [prompt(32), prompt(160, 4000)], [25, 40, 25]],
  ['no fewer than eight', [prompt(256), prompt(25_600, 4000)], [8, 8, 8]],
])('prompt tokens after 4,000 cells: %s', (_, runs, tokens) => {
  const pace = new PromptPace();
  for (const run of [...runs, ...runs, ...runs, ...runs]) pace.add(run);
  expect([...[short, long].map((unread) => pace.shared(after(4000, unread))), pace.first(4000)]).toEqual(tokens);
});

test('many short prompts do not hide what tokens cost after a long beginning', () => {
  const pace = new PromptPace();
  for (const run of [prompt(256), prompt(1280, 4000), ...Array.from({ length: 100 }, () => prompt(256))]) pace.add(run);
  expect([0, 4000, 8000].map((cells) => pace.shared(after(cells, long)))).toEqual([32, 8, 8]);
});

test.each<[string, MeasuredRun[], most: number]>([
  ['nothing measured', [], 16_000],
  ['cells cost nothing', [decode(10), decode(10, 8000)], 16_000],
  ['runs of 25 ms', [decode(5), decode(25, 4000), decode(45, 8000)], 4000],
  ['large models may take twice as long as for few cells', [decode(40), decode(80, 4000)], 4000],
  [
    'runs of many tokens do not count',
    [decode(5), { ...decode(90), tokens: 64 }, decode(25, 4000), decode(45, 8000)],
    4000,
  ],
  ['only long beginnings', [decode(26, 6000), decode(46, 12_000)], 5700],
])('jobs fit into a run of several callers: %s', (_, runs, most) => {
  const pace = new PromptPace();
  for (const run of runs) pace.add(run);
  const fitting = Array.from({ length: 160 }, (_, i) => 100 * (i + 1)).filter((cells) => pace.fits(cells));
  expect(fitting.at(-1)).toBe(most);
});

test('asks for a run that only decodes at first, and after 32 others', () => {
  const pace = new PromptPace();
  expect(pace.needsDecodeRun).toBe(true);
  pace.add(decode(40));
  for (let run = 0; run < 31; run++) pace.add(mixed(60, 10));
  expect(pace.needsDecodeRun).toBe(false);
  pace.add(mixed(60, 10));
  expect(pace.needsDecodeRun).toBe(true);
  pace.add(decode(42));
  expect(pace.needsDecodeRun).toBe(false);
});

test('follows the cost of a token, which grows with the prompt', () => {
  const pace = new PromptPace();
  pace.add(decode(40));
  for (let run = 0; run < 20; run++) pace.add(mixed(40 + 14, 14));
  const early = pace.tokens;
  for (let run = 0; run < 20; run++) pace.add(mixed(40 + 28, 10));
  expect([early, pace.tokens]).toEqual([28, 10]);
});

/** A job with tokens to feed: of its prompt, or of its branches (`yields`), which may be apart from it. */
function toyJob(caller: string, waitingTokens: number, { yields = false, runsApart = false, cells = 0 } = {}): Job {
  const job = { caller, waitingTokens, runsApart, decodes: yields, isBatch: false, newTokens: 0 };
  const planRun = (tokens: number) => {
    toy.newTokens = Math.min(tokens, waitingTokens);
  };
  const toy = { ...job, sequence: { length: cells }, unread: waitingTokens, plan: { rows: [] }, planRun, draft() {} };
  return toy as unknown as Job;
}

const prompt50 = toyJob('small', 50);
const options = toyJob('greedy', 900, { yields: true, runsApart: true });
const optionsTogether = toyJob('greedy', 900, { yields: true });
const extraction = toyJob('greedy', 16, { yields: true, runsApart: true });
const reading = toyJob('greedy', 2000);
const chat = toyJob('greedy', 1, { yields: true });
const branches20 = toyJob('small', 20, { runsApart: true });

/** Returns a planner for jobs of several callers, of which `greedy` got `most` milliseconds more than the others. */
function plannerOf(running: readonly Job[], most = 1000, now = () => 0): BatchPlanner {
  const shares = new FairShares();
  for (const { caller } of running) shares.add(caller, 0);
  shares.add('another', 0);
  shares.charge('greedy', most);
  const fail = () => expect.unreachable();
  return new BatchPlanner({ limits: defaultLimits(64), slots: 8, shares, now, fail });
}

test.each<[string, Job[], Job[][]]>([
  ['what the model computes apart has every other run', [options, reading], [[options], [reading], [options]]],
  ['the branches of an extraction, too', [extraction, reading], [[extraction], [reading], [extraction]]],
  ['a short prompt of the caller that got least is read alone', [options, prompt50, reading], [[prompt50]]],
  ['also beside options that the model computes with it', [optionsTogether, prompt50], [[prompt50]]],
  ['a chat decodes beside it', [extraction, chat, prompt50], [[prompt50, chat]]],
  ['and so are its branches', [extraction, chat, branches20, reading], [[branches20]]],
])('%s', (_, running, runs) => {
  const planner = plannerOf(running);
  for (const jobs of runs) {
    const planned = planner.plan(running);
    expect(new Set(planned)).toEqual(new Set(jobs));
    planner.measured(planned, 10);
  }
});

const APART = { yields: true, runsApart: true };

test.each([
  ['options of the caller that got least', toyJob('small', 60, { ...APART, cells: 4000 }), toyJob('greedy', 1, APART)],
  ['its long prompts', toyJob('small', 900, { cells: 4000 }), chat],
  ['options of others', toyJob('greedy', 60, { ...APART, cells: 4000 }), toyJob('small', 1, APART)],
])('a run has few tokens after a long prefix: %s', (_, job, beside) => {
  const planner = plannerOf([job, beside]);
  for (const cells of [0, 4000, 0, 4000]) {
    const measured = toyJob('another', 64, { cells });
    measured.planRun(64, 1);
    planner.measured([measured], cells === 0 ? 64 : 640);
  }
  expect(planner.plan([job, beside])).toContain(job);
  expect(job.newTokens).toBe(8);
});

test.each([
  [1000, 64],
  [129, 64],
  [128, 32],
])('if others got %s ms more, a run of a long prompt has %s tokens', (most, tokens) => {
  const long = toyJob('small', 2000);
  const running = [long, reading, toyJob('greedy', 900)];
  expect(plannerOf(running, most).plan(running)).toContain(long);
  expect(long.newTokens).toBe(tokens);
});

test('long prompts of several callers are read with 64 tokens in a run while nobody has a short one', () => {
  const prompts = ['small', 'greedy'].map((caller) => toyJob(caller, 2000, { cells: 4000 })) as [Job, Job];
  const short = toyJob('another', 900);
  let now = 0;
  const planner = plannerOf([...prompts, short], 0, () => now);
  for (const cells of [0, 4000, 0, 4000]) {
    const measured = toyJob('another', 64, { cells });
    measured.planRun(64, 1);
    planner.measured([measured], cells === 0 ? 64 : 640);
  }
  const read = (...more: Job[]) => {
    const planned = planner.plan([...prompts, ...more]).filter((job) => prompts.includes(job));
    return planned.map(({ newTokens }) => newTokens);
  };
  expect(read()).toEqual([64]);
  expect(read(short)).toEqual([8]);
  now = 9_999;
  expect(read()).toEqual([8]);
  now = 10_000;
  expect(read()).toEqual([64]);
});

test('long prompts of one caller together have the tokens that one run may have', () => {
  const prompts = [4000, 0, 0].map((cells) => toyJob('small', 900, { cells }));
  const running = [...prompts, chat];
  const planner = plannerOf(running, 0);
  for (const cells of [0, 4000, 0, 4000]) {
    const measured = toyJob('another', 64, { cells });
    measured.planRun(64, 1);
    planner.measured([measured], cells === 0 ? 64 : 640);
  }
  expect(planner.plan(running).filter((job) => prompts.includes(job))).toEqual([prompts[0]]);
});

test('a long prompt is read beside many branches that decode, once such a run was measured', () => {
  const extraction = toyJob('one', 20, { yields: true });
  const long = toyJob('one', 2000);
  const shares = new FairShares();
  const fail = () => expect.unreachable();
  const planner = new BatchPlanner({ limits: defaultLimits(64), slots: 8, shares, now: () => 0, fail });
  const runs = [1, 2].map(() => {
    const planned = planner.plan([extraction, long]);
    planner.measured(planned, 10);
    return planned;
  });
  expect(runs).toEqual([[extraction], [extraction, long]]);
});

test('long chats of several callers have runs of their own', () => {
  const chats = ['greedy', 'greedy', 'small'].map((caller) => toyJob(caller, 1, { yields: true, cells: 4000 }));
  const short = toyJob('greedy', 1, { yields: true, cells: 100 });
  const running = [...chats, short];
  const planner = plannerOf(running, 0);
  for (const [cells, ms] of [
    [100, 10],
    [4000, 24],
    [8000, 40],
  ] as const) {
    const measured = toyJob('another', 1, { yields: true, cells });
    measured.planRun(1, 1);
    planner.measured([measured], ms);
  }
  const [greedy, , small] = chats;
  expect(planner.plan(running)).toEqual([greedy, short]);
  expect(planner.plan([chats[1]!, small!, short, greedy!])).toEqual([chats[1], short]);
});
