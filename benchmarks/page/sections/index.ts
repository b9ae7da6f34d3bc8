import { type Goal, worstOf } from '../goals.ts';
import { byCase, byMetric, caseOf, metricOf, type Section } from '../section.ts';
import { table } from '../table.ts';
import { branches } from './branches.ts';
import { forms } from './forms.ts';
import { growth } from './growth.ts';
import { http } from './http.ts';
import { speed } from './speed.ts';

/** The sections of the page, in their order. */
export const SECTIONS: readonly Section[] = [
  branches,
  speed,
  forms,
  http,
  growth,
  {
    bench: 'decode',
    title: 'What the engine adds to onnxruntime',
    about:
      'One token after another, by the engine and by onnxruntime alone on the same graph, in messages: what schedule, masks and choice cost. Mean of all tokens.',
    tables: byCase,
    goals: (figures) =>
      worstOf(
        'speed of a step',
        { least: 0.95 },
        figures.filter(({ metric }) => metric === 'speed'),
      ),
  },
  {
    bench: 'process',
    title: 'What the engine process adds',
    about:
      'The same model decodes within one process, and in the engine process, through messages, detokeniser and backend, in messages. Medians of the rounds.',
    tables: byCase,
    goals: (figures) =>
      worstOf(
        'speed through the engine process, of the engine alone',
        { least: 0.95 },
        figures.filter(({ metric }) => metric === 'share of alone'),
      ),
  },
  {
    bench: 'memory',
    title: 'Memory',
    about: 'Peak of the process with 16 tasks, beside the bytes of weights and KV. One run.',
    tables: byCase,
    goals: (figures) =>
      worstOf(
        'peak, of weights + KV',
        { most: 1.25 },
        figures.filter(({ metric }) => metric === 'peak of weights + KV'),
      ),
  },
  {
    bench: 'handlers',
    title: 'The handlers alone',
    about:
      'Guard, key, reading, validation, shaping and quota, beside a bare hono route that parses the same JSON and sends the same body and checks nothing. Both in one ' +
      'process, in messages. Ratios above 1 are what the checks cost.',
    tables: byMetric,
  },
  {
    bench: 'grammar',
    title: 'Grammars',
    about:
      'Schemas compiled, and masks over 150,000 tokens at every choice of random answers (*first*: of a grammar’s first answer, when no mask was seen before); schemas made to be ' +
      'expensive; and whole answers beside `@huggingface/transformers-structured-output`, which is slower where the ratio is above 1.',
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
      'What the Worker, in workerd on this machine, adds to a call beside a Worker that only passes it on, one request at a time, in messages. *Direct* is the call to the box itself.',
    tables: byMetric,
  },
  {
    bench: 'quality',
    title: 'Quality',
    about:
      'How often the starter model is right, over HTTP, on two test sets: *held-out* was made by the generator of the training texts, from parts that training never saw; *natural* ' +
      'was written by hand. *As corrected by readers*: the same answers, held against what two readers said who did not know the expected ones, where both said the same. *Majority* and *random* are what one gets without reading. A form after the name is that of the weights (`--precision`): the first is what a CPU with int8 dot products gets by itself, the same as int8; *int4* has the published blocks of 4 bits, *float* the same weights computed in 32. Other models of its size are not measured: they would have to be downloaded.',
    tables: byCase,
  },
  {
    bench: 'orders',
    title: 'Options in several orders',
    about:
      'The questions with options of both test sets, asked with the options in one order (as sent), in two (as sent and reversed) and in as many as there are options, at most eight; ' +
      'the probabilities are averaged. *Right*: answers as expected. *Flipped*: answers that change when the caller sends the options reversed. Processor time is that of the ' +
      'server for the branches behind a text that it has read, beside one order. The starter was trained on options in any order, so it flips seldom; one order is the default, ' +
      'since more are not more often right than the few questions can tell, and cost about as much again.',
    tables: byMetric,
    goals: (figures) =>
      worstOf(
        'processor time of the branches, two orders',
        { most: 1.6 },
        figures.filter(({ system, metric }) => system === '2 orders' && metric.startsWith('processor time')),
      ),
  },
  {
    bench: 'fleet',
    title: 'Routing in a fleet',
    about:
      'A simulation, the same on every machine: no network, every edge knows the exact load of every box. Real edges hear of it late, so this is the most that a policy can reach.',
    image: 'fleet-routing.svg',
    tables: byMetric,
  },
];
