import { OF_ONE } from '../../single/hybrid.ts';
import { type Goal, worstOf } from '../goals.ts';
import { byCase, byMetric, caseOf, metricOf, type Section } from '../section.ts';
import { table } from '../table.ts';
import { branches } from './branches.ts';
import { crowd } from './crowd.ts';
import { forms } from './forms.ts';
import { growth } from './growth.ts';
import { http } from './http.ts';
import { speed } from './speed.ts';

/** Lists the sections of docs/performance.md in their order. */
export const SECTIONS: readonly Section[] = [
  branches,
  {
    bench: 'hybrid',
    title: 'Layers with a state',
    about:
      'Workload W on the shapes of LFM2-350M (convolutions) and Qwen3.5-0.8B (linear attention), random weights: ' +
      'one task and 16, in one run. Least of the rounds.',
    tables: byCase,
    goals: (figures) =>
      worstOf(
        '16 tasks, as a multiple of the processor time of one',
        { most: 2.5 },
        figures.filter(({ case: what, metric }) => what === '16 tasks' && metric === OF_ONE),
      ),
  },
  speed,
  forms,
  crowd,
  http,
  growth,
  {
    bench: 'decode',
    title: 'What the engine adds to onnxruntime',
    about:
      'The engine and onnxruntime alone decode one token after another on the same graph, in turn. The ' +
      'difference is the cost of scheduling, masks and choice. Mean of all tokens.',
    tables: byCase,
    goals: (figures) =>
      worstOf(
        'speed of a step',
        { least: 0.95 },
        figures.filter(({ metric }) => metric === 'speed'),
      ),
  },
  {
    bench: 'drafts',
    title: 'Drafts',
    about:
      'The extractions of both test sets, a request for each text, and the questions of the chat set: each request without drafts and with them, in turn, the order changing (docs/engine.md). ' +
      'Speed is the processor time without drafts, of that with them.',
    tables: byCase,
    goals: (figures) => [
      ...worstOf(
        'speed of extraction with drafts',
        { least: 1.25 },
        figures.filter(({ case: what, metric }) => what.startsWith('extract') && metric.startsWith('speed')),
      ),
      ...worstOf(
        'answers that drafts change',
        { most: 0 },
        figures.filter(({ metric }) => metric === 'answers that differ'),
      ),
    ],
  },
  {
    bench: 'process',
    title: 'What the engine process adds',
    about:
      'The same model decodes within one process and in the engine process (through messages, detokenizer and ' +
      'backend), in turn. Medians of the rounds.',
    tables: byCase,
    goals: (figures) =>
      worstOf(
        'speed through the engine process, as a share of the engine alone',
        { least: 0.95 },
        figures.filter(({ metric }) => metric === 'share of alone'),
      ),
  },
  {
    bench: 'memory',
    title: 'Memory',
    about: 'Peak memory of the process with 16 tasks, and the bytes of weights and KV. One run.',
    tables: byCase,
    goals: (figures) =>
      worstOf(
        'peak, as a multiple of weights + KV',
        { most: 1.25 },
        figures.filter(({ metric }) => metric === 'peak of weights + KV'),
      ),
  },
  {
    bench: 'handlers',
    title: 'The handlers alone',
    about:
      'The handlers (guard, key, reading, validation, shaping and quota) compared with a bare hono route that ' +
      'parses the same JSON, sends the same body and checks nothing. Both run in one process, in turn. A ratio ' +
      'above 1 is the cost of the checks.',
    tables: byMetric,
  },
  {
    bench: 'grammar',
    title: 'Grammars',
    about:
      'The time to compile schemas, and to compute the mask over 150,000 tokens at every choice of random ' +
      'answers (*first*: during a grammar’s first answer, when no mask is known yet). Then schemas made to be ' +
      'expensive. Last, whole answers compared with `@huggingface/transformers-structured-output`, which is ' +
      'slower if the ratio is above 1.',
    tables(figures) {
      const ours = figures.filter(({ system, metric }) => system === 'assay' && metric !== 'per token of answer');
      return [table(ours, caseOf, metricOf), ...byMetric(figures.filter((figure) => !ours.includes(figure)))];
    },
    goals(figures): Goal[] {
      const of = (begin: string) =>
        figures.filter(({ system, metric }) => system.startsWith('assay') && metric.startsWith(begin));
      return [
        ...worstOf(
          'mask over 150,000 tokens, median',
          { most: 1 },
          of('mask, median').filter(({ case: what }) => what === 'all'),
        ),
        ...worstOf(
          'compile of a schema that is accepted',
          { most: 100 },
          of('compile').filter(({ system }) => !system.includes('refused')),
        ),
      ];
    },
  },
  {
    bench: 'edge',
    title: 'The edge',
    about:
      'The time that the Worker, in workerd on this machine, adds to a call, compared with a Worker that only ' +
      'forwards it. One request at a time, in turn. *Direct* is the call to the box itself.',
    tables: byMetric,
  },
  {
    bench: 'quality',
    title: 'Quality',
    about:
      'How often the starter model is right, over HTTP, on two test sets. *Held-out* was made by the generator ' +
      'of the training texts, from parts that were not in the training; *natural* was written by hand. *As ' +
      'corrected by readers*: the same answers, compared with what two readers answered who did not know the ' +
      'expected answers, if both agreed. *Majority* and *random* are the scores without reading. A form after ' +
      'the name is that of the weights (`--precision`). The first row is the default on a CPU with int8 dot ' +
      'products, the same as int8; *int4* has the published blocks of 4 bits; *float* computes the same weights ' +
      'in 32 bits. Other models of this size are not measured, because they would have to be downloaded.',
    tables: byCase,
  },
  {
    bench: 'orders',
    title: 'Options in several orders',
    about:
      'The questions with options of both test sets, with the options in one order (as sent), in two (as sent ' +
      'and reversed), and in as many orders as there are options, at most eight. The probabilities are averaged. ' +
      '*Right*: answers as expected. *Flipped*: answers that change when the caller sends the options reversed. ' +
      'Processor time is that of the engine for the branches after a text that it has read, compared with one ' +
      'order. The starter was trained on options in any order, so it seldom flips. One order is the default: on ' +
      'these few questions more orders are not measurably better. The words before the options are read once for ' +
      'all orders. The last table compares 64 questions of `/v1/decisions`, with all probabilities, with the same ' +
      'questions as decide tasks of `/v1/tasks`: processor time of the server, for a new text each time.',
    tables: byMetric,
    goals: (figures) =>
      worstOf(
        'processor time of the branches, two orders',
        { most: 1.6 },
        figures.filter(({ system, metric }) => system === '2 orders' && metric.startsWith('processor time')),
      ).concat(
        worstOf(
          'processor time of 64 questions, of that of 64 decide tasks, which repeats within 5%',
          { most: 1.05 },
          figures.filter(({ system }) => system === '64 questions'),
        ),
      ),
  },
  {
    bench: 'fleet',
    title: 'Routing in a fleet',
    about:
      'A simulation, the same on every machine: there is no network, and every edge knows the exact load of ' +
      'every box. Real edges learn of it late, so this is the best that a policy can reach.',
    image: 'fleet-routing.svg',
    tables: byMetric,
  },
];
