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
 * Returns the most rows of logits up to which a run drafts tokens (`Limits.draftRows`). Returns 0, no drafts, where a
 * run of one token uses other kernels than a run of several, so that drafts would change near-ties (4 bits; 8 bits
 * without VNNI), and for kernels without a measurement.
 */
export function draftRows({ device, form }: Pick<Manifest, 'device' | 'form'>, kernels = kernelFamily()): number {
  return device === 'CPU' && form === 'int8' && MEASURED_KERNELS.has(kernels) ? DRAFT_ROWS : 0;
}
