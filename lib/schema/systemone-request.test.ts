import { expect, test } from 'vitest';
import { validate } from '../validation/validate.ts';
import { SystemOneRequest } from './systemone-request.ts';

const questions = [
  ['a list of labels', (label: string) => ({ type: 'choice', criteria: [label] })],
  ['an object of labels', (label: string) => ({ type: 'choice', criteria: { [label]: null } })],
  ['levels', (label: string) => ({ type: 'score', criteria: [label] })],
] as const;
const labels = [
  ['x'.repeat(1024), true],
  ['x'.repeat(1025), false],
  ['🎉'.repeat(1024), true],
  [`${'🎉'.repeat(1024)}x`, false],
  ['🎉'.repeat(1025), false],
  ['x'.repeat(2049), false],
] as const;

test.each(questions.flatMap(([name, of]) => labels.map(([label, fits]) => ({ name, of, label, fits }))))(
  '$name of $label.length code units: $fits',
  ({ of, label, fits }) => {
    const check = () => validate(SystemOneRequest, { model: 'a/b', state: '', questions: { a: of(label) } });
    if (fits) expect(check()).toBeDefined();
    else expect(check).toThrow(/1024 characters/);
  },
);
