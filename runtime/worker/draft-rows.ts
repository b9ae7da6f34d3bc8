import { kernelFamily } from '../compile/kernels.ts';
import type { Manifest } from '../compile/manifest.ts';

/** Rows of logits up to which a run drafts tokens: 8 of a single chat, and as many of two extractions beside it. */
const DRAFT_ROWS = 16;

/** Kernels with which drafts were measured to change no answer and to pay (docs/engine.md, "Drafts"). */
const MEASURED_KERNELS: ReadonlySet<string> = new Set(['AVX-512 VNNI']);

/**
 * Returns the rows of logits up to which a run drafts tokens (`Limits.draftRows`). 0 if drafts would change near-ties,
 * because a run of one token uses other kernels than a run of several (4 bits; 8 bits without VNNI), and if nothing was
 * measured.
 */
export function draftRows({ device, form }: Pick<Manifest, 'device' | 'form'>, kernels = kernelFamily()): number {
  return device === 'CPU' && form === 'int8' && MEASURED_KERNELS.has(kernels) ? DRAFT_ROWS : 0;
}
