import type { Figure } from '../../report.ts';
import { difference, finder, paragraph, ratio, sentence } from '../answer.ts';
import { type Goal, worstOf } from '../goals.ts';
import { byMetric, caseOf, metricOf, type Section } from '../section.ts';
import { table } from '../table.ts';

export const handlers: Section = {
  bench: 'handlers',
  title: 'The handlers alone',
  answer(figures) {
    const of = finder(figures);
    const added = (what: string) => difference(of('assay', what, 'p50'), of('bare hono', what, 'p50'));
    return sentence`At the median, the handlers add ${added('1 task')} µs to a request with one task, and ${added('64 tasks')} µs to one with 64 tasks.`;
  },
  method: () => [
    'The handlers (guard, key, reading, validation, shaping and quota) are compared with a bare hono route. It parses the ' +
      'same JSON and sends the same body, but checks nothing. Both run in one process, in turn. A ratio above 1 is the cost of ' +
      'the checks.',
  ],
  tables: byMetric,
};

export const grammar: Section = {
  bench: 'grammar',
  title: 'Grammars',
  answer(figures) {
    const of = finder(figures);
    const [mask] = masks(figures);
    const [worst] = worstOf('', { most: 0 }, accepted(figures));
    return paragraph(
      sentence`A mask over 150,000 tokens takes ${mask?.value} ms at the median.`,
      sentence`The schema of an invoice compiles in ${of('assay', 'invoice', 'compile, median')} ms, the most expensive accepted schema in ${worst?.measured} ms.`,
    );
  },
  method: () => [
    'First the time to compile schemas, and to compute the mask over 150,000 tokens at every choice of random answers. ' +
      '*First* means during a grammar’s first answer, when no mask is known yet.',
    'Then schemas that are made to be expensive, accepted and refused ones. *Peak* is the growth of the process’s peak memory ' +
      'while such a schema is checked; *kept* is the memory that it still takes afterwards.',
    'Last, whole answers compared with `@huggingface/transformers-structured-output`, which is slower if the ratio is above 1.',
  ],
  tables(figures) {
    const ours = figures.filter(({ system, metric }) => system === 'assay' && metric !== 'per token of answer');
    return [table(ours, caseOf, metricOf), ...byMetric(figures.filter((figure) => !ours.includes(figure)))];
  },
  goals: (figures): Goal[] => [
    ...worstOf('mask over 150,000 tokens, median', { most: 1 }, masks(figures)),
    ...worstOf('compile of a schema that is accepted', { most: 100 }, accepted(figures)),
  ],
};

/** Returns the figures of Assay's median time for a mask, over all schemas. */
function masks(figures: readonly Figure[]): Figure[] {
  return figures.filter(
    ({ system, case: what, metric }) =>
      system.startsWith('assay') && metric.startsWith('mask, median') && what === 'all',
  );
}

/** Returns the figures of Assay's time to compile schemas that are accepted. */
function accepted(figures: readonly Figure[]): Figure[] {
  return figures.filter(
    ({ system, metric }) => system.startsWith('assay') && metric.startsWith('compile') && !system.includes('refused'),
  );
}

export const edge: Section = {
  bench: 'edge',
  title: 'The edge',
  answer(figures) {
    const of = finder(figures);
    const added = (what: string) => difference(of('edge', what, 'median'), of('pass-through', what, 'median'));
    return sentence`At the median, the edge adds ${added('1 KiB, 1 task')} ms to a request of 1 KiB with one task, and ${added('64 KiB, 16 tasks')} ms to one of 64 KiB with 16 tasks.`;
  },
  method: () => [
    'The Worker runs in workerd on this machine. It is compared with a Worker that only forwards the call (*pass-through*). ' +
      '*Direct* is the call to the box itself. The routes take turns, one request at a time.',
  ],
  tables: byMetric,
};

export const fleet: Section = {
  bench: 'fleet',
  title: 'Routing in a fleet',
  answer(figures) {
    const of = finder(figures);
    const rate = '1000 requests/s';
    const hits = (policy: string) => ratio(of(policy, rate, 'prefix-cache hits'), 0.01);
    return sentence`At 1,000 requests a second, bounded rendezvous hashing, which the edge uses, finds the context in a box’s cache for ${hits('bounded rendezvous')}% of the requests; random routing does for ${hits('random')}%. 99% of the requests wait less than ${of('bounded rendezvous', rate, 'wait, p99')} ms.`;
  },
  method: () => [
    'A simulation, so the figures are the same on every machine. There is no network, and every edge knows the exact load of ' +
      'every box. Real edges learn of it late, so the figures are the best that a policy can reach.',
  ],
  image: 'fleet-routing.svg',
  tables: byMetric,
};
