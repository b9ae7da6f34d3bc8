import { expect, test } from 'vitest';
import type { Precision, PrecisionChoice } from '../../lib/schema/precision.ts';
import {
  accuracyWarning,
  choosePrecision,
  type MeasuredPrecision,
  measuredText,
  precisionTiers,
  type RequestedPrecision,
  refuseUseless,
  UNUSABLE_ERROR,
} from './choose-precision.ts';

test.each<
  [
    what: string,
    precision: RequestedPrecision,
    refused: Precision[],
    hasReference: boolean,
    tiers: RequestedPrecision[][],
  ]
>([
  [
    'nothing is known',
    'auto',
    [],
    true,
    [
      ['int8', 'int4'],
      ['int8-blocks', 'float'],
    ],
  ],
  ['the fastest gave wrong numbers', 'auto', ['int8'], true, [['int4'], ['int8-blocks', 'float']]],
  ['both fast ones did', 'auto', ['int8', 'int4'], true, [['int8-blocks', 'float']]],
  ['all but floats did', 'auto', ['int8', 'int4', 'int8-blocks'], true, [['float']]],
  ['all did', 'auto', ['int8', 'int4', 'int8-blocks', 'float'], true, [['float']]],
  ['nothing can be measured', 'auto', [], false, [['int8'], ['float']]],
  ['nothing can be measured, and it gave wrong numbers', 'auto', ['int8'], false, [['float']]],
  ['one was asked for', 'int8-blocks', [], true, [['int8-blocks']]],
])('the precisions to compile where %s', (_, precision, refused, hasReference, tiers) => {
  expect(precisionTiers({ device: 'CPU', precision, refused }, { published: 'float', hasReference })).toEqual(tiers);
});

test('the blocks of a GGUF file are measured with the fastest precisions, and kept where nothing can be measured', () => {
  const tiers = (hasReference: boolean) =>
    precisionTiers({ device: 'CPU', precision: 'auto' }, { published: 'published', hasReference });
  expect(tiers(true)[0]).toEqual(['int8', 'int4', 'published']);
  expect(tiers(false)).toEqual([['published'], ['float']]);
});

const SMOLLM2: PrecisionChoice = {
  reason: '',
  kernels: 'AVX2',
  measured: [
    { precision: 'int8', error: 0.226, ms: 47 },
    { precision: 'float', error: 0, ms: 98 },
  ],
  errorLimit: 0.2825,
};

test.each<[Precision, RegExp | null]>([
  ['int8', /^In int8, .* logits off by 22\.6%, more than the 20% .* --precision auto/],
  ['float', null],
  ['int4', null],
])('the warning for %s is %s', (precision, warning) => {
  if (warning) expect(accuracyWarning(precision, SMOLLM2)).toMatch(warning);
  else expect(accuracyWarning(precision, SMOLLM2)).toBeNull();
});

const precision = (name: MeasuredPrecision['precision'], error: number | null, ms: number): MeasuredPrecision => ({
  precision: name,
  error,
  ms,
});

test.each<[string, MeasuredPrecision[], string | undefined]>([
  ['the fastest', [precision('int8', 0.1, 50), precision('int4', 0.05, 90)], 'int8'],
  ['never one that is far off', [precision('int8', 0.4, 50), precision('int4', 0.05, 90)], 'int4'],
  ['of two as fast, the more accurate', [precision('int8', 0.1, 50), precision('int4', 0.05, 54)], 'int4'],
  ['nor one that gives no numbers', [precision('int8', Number.NaN, 50), precision('int4', 0.05, 90)], 'int4'],
  ['none where all are far off', [precision('int8', 0.3, 50), precision('int4', 0.5, 90)], undefined],
  ['none of the first two for SmolLM2-135M', [precision('int8', 0.23, 47), precision('int4', 1.6, 60)], undefined],
  [
    'blocks for it then',
    [
      precision('int8', 0.23, 47),
      precision('int4', 1.6, 60),
      precision('int8-blocks', 0.088, 69),
      precision('float', 0, 98),
    ],
    'int8-blocks',
  ],
  ['floats where blocks are slow', [precision('int8-blocks', 0.088, 400), precision('float', 0, 98)], 'float'],
])('%s', (_, measured, chosen) => {
  expect(choosePrecision(measured)?.precision).toBe(chosen);
});

test('what was measured, for people', () => {
  const precisions = [
    precision('int8', 0.0304, 41),
    precision('int8-blocks', UNUSABLE_ERROR, 0),
    precision('int4', null, 67.25),
  ];
  expect(measuredText(precisions)).toBe(
    'int8 41.0 ms, logits off by 3.0%; int8-blocks fails on this CPU; int4 67.3 ms, accuracy not measured',
  );
});

test.each([
  ['int4' as const, 0.98, /cannot be used as int4: logits off by 98.0%, more than the 75%/],
  ['int4' as const, UNUSABLE_ERROR, /cannot be used as int4: fails on this CPU\. Use --precision auto/],
  ['int4' as const, 0.5, null],
  ['int8' as const, null, null],
])('%s off by %s, asked for: refused with %s', (name, error, message) => {
  const refuse = () => refuseUseless({ precision: name, error });
  if (message) expect(refuse).toThrow(message);
  else expect(refuse).not.toThrow();
});

const shifted = (name: MeasuredPrecision['precision'], shift: number, ms: number): MeasuredPrecision => ({
  ...precision(name, 0.5, ms),
  shift,
});

test.each<[string, MeasuredPrecision[], string | undefined]>([
  ['is judged by its probabilities alone', [shifted('int8', 0.02, 10)], 'int8'],
  ['has no precision where they move', [shifted('int8', 0.021, 10)], undefined],
  ['is as exact as half the time more allows', [shifted('int8', 0.01, 10), shifted('float', 0, 15)], 'float'],
  ['is not much slower for exactness', [shifted('int8', 0.01, 10), shifted('float', 0, 16)], 'int8'],
])('a decision model %s', (_, measured, chosen) => {
  expect(choosePrecision(measured)?.precision).toBe(chosen);
});
