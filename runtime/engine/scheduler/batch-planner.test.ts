import { expect, test } from 'vitest';
import { type MeasuredRun, PromptPace } from './batch-planner.ts';

const decode = (ms: number): MeasuredRun => ({ ms, decodes: true, promptTokens: 0 });
const mixed = (ms: number, promptTokens: number): MeasuredRun => ({ ms, decodes: true, promptTokens });
const prompt = (ms: number): MeasuredRun => ({ ms, decodes: false, promptTokens: 256 });

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
