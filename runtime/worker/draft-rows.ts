import { kernelFamily } from '../compile/kernels.ts';
import type { Manifest } from '../compile/manifest.ts';

/**
 * Most rows of logits of a run that drafts tokens: the 8 of a single chat, and as many of two extractions beside it.
 */
const DRAFT_ROWS = 16;

/**
 * CPU kernel families with which drafts were measured to save time without changing any answer (docs/engine.md,
 * "Drafts").
 */
const MEASURED_KERNELS: ReadonlySet<string> = new Set(['AVX-512 VNNI']);

/**
 * Returns the number of rows of logits up to which a run gets drafted tokens (`Limits.draftRows`); 0 for no drafts.
 * Models in 4 bits, and in 8 bits without VNNI, get none: there a run of one token uses other kernels than a run of
 * several, so drafts would change near-ties. Kernels without a measurement get none either.
 */
export function draftRows({ device, form }: Pick<Manifest, 'device' | 'form'>, kernels = kernelFamily()): number {
  return device === 'CPU' && form === 'int8' && MEASURED_KERNELS.has(kernels) ? DRAFT_ROWS : 0;
}
