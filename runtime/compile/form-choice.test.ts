import { expect, test } from 'vitest';
import type { FormChoice, WeightForm } from '../../lib/schema/form-choice.ts';
import { accuracyWarning, formTiers, type Precision } from './form-choice.ts';

test.each<[what: string, precision: Precision, refused: WeightForm[], hasReference: boolean, tiers: Precision[][]]>([
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
])('the forms to compile where %s', (_, precision, refused, hasReference, tiers) => {
  expect(formTiers({ device: 'CPU', precision, refused }, { published: 'float', hasReference })).toEqual(tiers);
});

test('the blocks of a GGUF file are measured with the fastest forms, and kept where nothing can be measured', () => {
  const tiers = (hasReference: boolean) =>
    formTiers({ device: 'CPU', precision: 'auto' }, { published: 'published', hasReference });
  expect(tiers(true)[0]).toEqual(['int8', 'int4', 'published']);
  expect(tiers(false)).toEqual([['published'], ['float']]);
});

const SMOLLM2: FormChoice = {
  reason: '',
  kernels: 'AVX2',
  measured: [
    { form: 'int8', error: 0.226, ms: 47 },
    { form: 'float', error: 0, ms: 98 },
  ],
  errorLimit: 0.2825,
};

test.each<[WeightForm, RegExp | null]>([
  ['int8', /^In int8, .* logits off by 22\.6%, more than the 20% .* --precision auto/],
  ['float', null],
  ['int4', null],
])('the warning for %s is %s', (form, warning) => {
  if (warning) expect(accuracyWarning(form, SMOLLM2)).toMatch(warning);
  else expect(accuracyWarning(form, SMOLLM2)).toBeNull();
});
