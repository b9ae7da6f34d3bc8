import { kernelFamily } from '../compile/kernels.ts';
import type { Manifest } from '../compile/manifest.ts';

/**
 * Maximum rows of logits in a run with drafted tokens. One chat with a full draft uses 8 of them; the rest is for
 * drafts of jobs beside it.
 */
const DRAFT_ROWS = 16;

/**
 * CPU kernel families with which drafts were measured to save time without changing any answer (docs/engine.md,
 * "Drafts").
 */
const MEASURED_KERNELS: ReadonlySet<string> = new Set(['AVX-512 VNNI']);

/**
 * Returns the maximum number of rows of logits in a run with drafted tokens (`Limits.draftRows`); 0 for no drafts.
 * Models in 4 bits, and in 8 bits without VNNI, get none: there a run of one token uses other kernels than a run of
 * several, so drafts would change near-ties. Kernels without a measurement get none either.
 */
export function draftRows({ device, form }: Pick<Manifest, 'device' | 'form'>, kernels = kernelFamily()): number {
  return device === 'CPU' && form === 'int8' && MEASURED_KERNELS.has(kernels) ? DRAFT_ROWS : 0;
}
