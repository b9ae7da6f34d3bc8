import type { Figure } from '../../report.ts';
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
  about:
    'The same model in 8-bit and in 4-bit weights, on each family of kernels: processor seconds, median of the ' +
    "rounds (least to most). Without VNNI, 8 bits run on onnxruntime's exact kernels (docs/engine.md). " +
    '*Hidden* means that this CPU has newer instructions, but onnxruntime was kept from detecting them: its ' +
    'kernels are those of an older CPU, at the memory speed and clock of this one.',
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
