import { OF_ONE } from '../../single/hybrid.ts';
import { finder, paragraph, ratio, sentence } from '../answer.ts';
import { worstOf } from '../goals.ts';
import { byCase, type Section } from '../section.ts';

export const hybrid: Section = {
  bench: 'hybrid',
  title: 'Layers with a state',
  answer(figures) {
    const of = finder(figures);
    const times = (system: string) => of(system, '16 tasks', OF_ONE);
    return sentence`Models with convolutions or linear attention share the context, too: 16 tasks take ${times('lfm2-350m, 8 bits')} times (LFM2-350M) and ${times('qwen3.5-0.8b, 8 bits')} times (Qwen3.5-0.8B) the processor time of one.`;
  },
  method: () => [
    'Workload W, with one task and with 16, on models in the shapes of LFM2-350M (convolutions) and Qwen3.5-0.8B (linear ' +
      'attention) with random weights. The table shows the least of the rounds.',
  ],
  tables: byCase,
  goals: (figures) =>
    worstOf(
      '16 tasks, as a multiple of the processor time of one',
      { most: 2.5 },
      figures.filter(({ case: what, metric }) => what === '16 tasks' && metric === OF_ONE),
    ),
};

/** Length of the rows by which encoders are compared. */
const LONG_ROW = '1064 tokens';

export const encoders: Section = {
  bench: 'encoders',
  title: 'Encoders',
  answer(figures) {
    const of = finder(figures);
    const time = (system: string) => of(system, LONG_ROW, 'processor time');
    return sentence`An encoder of 150 million parameters reads a row of 1,064 tokens in ${time('assay int8')} s of processor time with 8-bit weights and in ${time('assay float')} s in floats, where PyTorch takes ${time('PyTorch float32')} s in floats.`;
  },
  method: () => [
    'A ModernBERT-base with random weights reads one row on two threads. The table shows the least of four rounds. An encoder ' +
      'reads its text again for each question; a language model, once for all.',
  ],
  tables: byCase,
  goals(figures) {
    const of = finder(figures);
    const times = ratio(
      of('assay int8', LONG_ROW, 'processor time'),
      of('PyTorch float32', LONG_ROW, 'processor time'),
    );
    if (times === undefined) return [];
    return [{ what: 'int8, as a share of PyTorch in floats', wanted: { most: 0.55 }, measured: times, unit: '' }];
  },
};

export const decode: Section = {
  bench: 'decode',
  title: 'What the engine adds to onnxruntime',
  answer(figures) {
    const of = finder(figures);
    const time = (system: string) => of(system, 'a token at 512', 'time');
    return sentence`A decode step takes ${time('assay int8')} ms in the engine, and ${time('onnxruntime int8')} ms in onnxruntime alone.`;
  },
  method: () => [
    'The engine and onnxruntime alone decode one token after another on the same graph, in turn. The difference is the cost ' +
      'of scheduling, masks and choice. The table shows the mean of all tokens.',
  ],
  tables: byCase,
  goals: (figures) =>
    worstOf(
      'speed of a step',
      { least: 0.95 },
      figures.filter(({ metric }) => metric === 'speed'),
    ),
};

export const drafts: Section = {
  bench: 'drafts',
  title: 'Drafts',
  answer(figures) {
    const of = finder(figures);
    const speed = (what: string) => of('starter, int8', what, 'speed (processor)');
    const differing = figures.filter(({ metric }) => metric === 'answers that differ').map(({ value }) => value);
    return paragraph(
      sentence`By processor time, drafts make extractions ${speed('extractions, held-out')} (held-out) and ${speed('extractions, natural')} (natural) times as fast, and chats ${speed('chat')} times.`,
      differing.length > 0 ? sentence`They changed ${differing.reduce((sum, one) => sum + one)} answers.` : '',
    );
  },
  method: () => [
    'The extractions of both test sets, with one request for each text, and the questions of the chat set. Each request runs ' +
      'without drafts and with them, in alternating order ([engine.md](engine.md#drafts)). *Speed* is the processor time ' +
      'without drafts, divided by that with drafts.',
  ],
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
};

export const engineProcess: Section = {
  bench: 'process',
  title: 'What the engine process adds',
  answer(figures) {
    const of = finder(figures);
    const time = (system: string) => of(system, 'decode', 'time per token');
    return sentence`A token takes ${time('engine process')} ms through the engine process, and ${time('engine alone')} ms with the engine alone.`;
  },
  method: () => [
    'The same model decodes, in turn, with the engine in the measuring process and through the engine process (with messages, ' +
      'detokenizer and backend). The table shows the medians of the rounds.',
  ],
  tables: byCase,
  goals: (figures) =>
    worstOf(
      'speed through the engine process, as a share of the engine alone',
      { least: 0.95 },
      figures.filter(({ metric }) => metric === 'share of alone'),
    ),
};

export const memory: Section = {
  bench: 'memory',
  title: 'Memory',
  answer(figures) {
    const of = finder(figures);
    const size = (metric: string) => of('assay int8', '16 tasks', metric);
    return sentence`With 16 tasks, the process takes at most ${size('peak')} MB, for ${size('weights')} MB of weights and ${size('KV')} MB of KV.`;
  },
  method: () => [
    'The peak memory of a process that answers workload W with 16 tasks, and the bytes of weights and KV. One run.',
  ],
  tables: byCase,
  goals: (figures) =>
    worstOf(
      'peak, as a multiple of weights + KV',
      { most: 1.25 },
      figures.filter(({ metric }) => metric === 'peak of weights + KV'),
    ),
};
