import { expect, test } from 'vitest';
import type { FormChoice } from '../../lib/schema/form-choice.ts';
import type { WeightForm } from '../../lib/schema/weight-form.ts';
import { accuracyWarning } from './form-choice.ts';

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
