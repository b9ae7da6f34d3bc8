import { findClef } from './clef.ts';
import { findCodeReadout } from './code-readout.ts';
import type { DecisionContract } from './contract.ts';
import { findDecider } from './decider.ts';
import { findDecision } from './decision.ts';
import { findJevk5 } from './jevk5.ts';
import { findKev } from './kev.ts';
import { findLev } from './lev.ts';
import { findNimble } from './nimble.ts';
import { type PublishedFiles, RefusedContract } from './published-files.ts';
import { findStartlux } from './startlux.ts';
import { findStrands } from './strands.ts';
import { findTev1 } from './tev1.ts';
import { findWinnow } from './winnow.ts';

/**
 * Finds the contract of a decision model on a causal language model by its files, and by the name of its repository
 * where the files are those of any model. Returns null for any other model.
 *
 * @throws RefusedContract if it is a decision model that cannot run here
 */
export function findDecisionContract(files: PublishedFiles, repository: string): DecisionContract | null {
  if (files.paths.has('head.pt') && files.paths.has('export.json'))
    throw new RefusedContract('it reasons in words before it answers (Jeeves), which is not supported');
  const config = files.json['config.json'];
  if (typeof config === 'object' && config !== null && 'd1_attention' in config)
    throw new RefusedContract('its config.json names d1_attention, which is not supported');
  return (
    findClef(files) ??
    findCodeReadout(files) ??
    findStartlux(files) ??
    findDecider(files) ??
    findStrands(files) ??
    findDecision(files, repository) ??
    findKev(files) ??
    findNimble(files) ??
    findLev(files) ??
    findJevk5(files) ??
    findTev1(repository) ??
    findWinnow(repository)
  );
}
