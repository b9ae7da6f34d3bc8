import type { Figure } from '../../report.ts';
import { finder, sentence } from '../answer.ts';
import type { Section } from '../section.ts';
import { medianAndRange, table } from '../table.ts';

/** Families of kernels that users' machines may have, newest first (`runtime/compile/kernels.ts`). */
const FAMILIES = ['AMX', 'AVX-512 VNNI', 'AVX-VNNI', 'AVX-512', 'AVX2', 'NEON i8mm', 'NEON dot product', 'NEON'];
/** Splits a case such as `AVX2 (AMD EPYC, AVX-512 hidden): W, 16 tasks` into the kernels and the workload. */
const CASE = /^(.+? \(.+?\)): (.+)$/;

const part = ({ case: what }: Figure, index: 1 | 2): string => CASE.exec(what)?.[index] ?? what;
const kernels = (figure: Figure): string => part(figure, 1);

export const forms: Section = {
  bench: 'forms',
  title: '8 and 4 bits, with and without VNNI',
  answer(figures) {
    const of = finder(figures);
    const [first] = figures;
    const time = (form: string, work: string) => first && of(form, `${kernels(first)}: ${work}`, 'median');
    const [tasks, chat] = ['W, 16 tasks on a new context of 1024 tokens', 'a chat that writes 24 tokens'];
    return sentence`On ${first && kernels(first)}, 16 tasks on a new context take ${time('int8', tasks)} s of processor time in 8 bits and ${time('int4', tasks)} s in 4 bits. A chat that writes 24 tokens takes ${time('int8', chat)} s in 8 bits and ${time('int4', chat)} s in 4 bits.`;
  },
  method: () => [
    'The same model with 8-bit and with 4-bit weights, on each family of onnxruntime’s CPU kernels. The table shows processor ' +
      'seconds: the median of the rounds, then the least and the most.',
    'Without VNNI, 8 bits use onnxruntime’s exact kernels ([engine.md](engine.md#precisions)). *Hidden* means that ' +
      'onnxruntime was kept from detecting newer instructions of this CPU. It then uses the kernels for an older CPU, but at ' +
      'the memory speed and clock of this one.',
  ],
  tables(figures) {
    return [
      table(figures, (figure) => `${part(figure, 2)}: ${figure.system}`, kernels, medianAndRange),
      missingText(figures),
    ];
  },
};

/** Returns a text with the families that have not been measured; empty if all were measured. */
export function missingText(figures: readonly Figure[]): string {
  const measured = new Set(figures.map((figure) => kernels(figure).replace(/ \(.*$/, '')));
  const missing = FAMILIES.filter((family) => !measured.has(family));
  return missing.length > 0
    ? `Not measured yet: ${missing.join(', ')}. \`npm run bench -- forms --save\` on such a machine adds its column.`
    : '';
}
