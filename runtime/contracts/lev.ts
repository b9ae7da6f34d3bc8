import * as v from 'valibot';
import { at } from '../../lib/at.ts';
import { AssayError } from '../../lib/errors.ts';
import {
  type ContractText,
  type DecisionContract,
  letterCodes,
  logSoftmax,
  type OpenContract,
  type Reading,
  type Row,
  range,
} from './contract.ts';
import { Ignored, type PublishedFiles, settingsIn, Temperature, TYPE_OF } from './published-files.ts';
import { isFalsy, type PyValue, textOrJson } from './python-json.ts';
import type { Question } from './question.ts';

/*
 * lev (Interfaze): letters after a chat prompt, averaged over two orders of a choice's options; true or false on a
 * scale from 0 to 8. Source: InterfazeAI/lev, `packages/lev/src/lev/{prompt,labels,model,calibrate}.py`.
 */

const FILE = 'lev_release.json';
const CALIBRATION = 'calibration.json';
const Release = v.strictObject({
  prompt_style: v.literal('chat'),
  noul_readout: v.optional(v.literal('rating')),
  base_model: v.string(),
  name: v.optional(v.string()),
  calibrated: v.optional(v.boolean()),
  // The head for questions with more options than labels is not read: 255 labels are enough here.
  mode_b_head: Ignored,
  preset: Ignored,
  step: Ignored,
  lora_rank: Ignored,
  files: Ignored,
  metrics: Ignored,
  created: Ignored,
});
const Calibration = v.looseObject({ temperatures: v.record(v.string(), Temperature) });

const SYSTEM =
  'You are a System One decision model. You read the Evidence and answer each Criterion by choosing exactly one of the listed options. You never explain. You answer with the single option label only.';
const TAIL = '<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n';
const LABELS = 255;
/** Highest number of the scale on which true or false is rated. */
const TOP = 8;

/** Returns the contract of a model with `lev_release.json`; null for any other. */
export function findLev(files: PublishedFiles): DecisionContract | null {
  if (!files.paths.has(FILE)) return null;
  const release = settingsIn(files, FILE, Release);
  const calibrated = files.paths.has(CALIBRATION);
  const temperatures = calibrated ? settingsIn(files, CALIBRATION, Calibration).temperatures : {};
  return {
    base: { repository: release.base_model, revision: null },
    info: {
      name: 'lev',
      version: release.name ?? null,
      temperature: calibrated ? `${CALIBRATION}: temperatures` : 'none: the model has no calibration.json',
    },
    limits: { options: LABELS, levels: LABELS },
    maxTokens: 262_144,
    confidence: { predicate: 'lead', choice: 'lead', score: 'lead' },
    open: (text) => openLev(temperatures, text),
  };
}

function openLev(temperatures: Readonly<Record<string, number>>, text: ContractText): OpenContract {
  const single = (codes: readonly string[]) => codes.filter((code) => text.encode(code).length === 1);
  const codes = single(letterCodes()).slice(0, LABELS);
  const digits = single(range(TOP + 1).map(String));
  if (digits.length <= TOP) {
    throw new AssayError(
      'engine_failed',
      'The tokenizer has no single tokens for the digits of the scale. Download the model again.',
    );
  }

  function* ask(prefix: readonly number[], question: Question): Reading {
    const { kind, options } = question;
    if (kind === 'predicate') {
      const digits = range(TOP + 1).map((digit) => codes.length + digit);
      const [logits = []] = yield [row(prefix, scale(question), digits)];
      const rated = logSoftmax(logits, temperatureOf(question));
      const yes = rated.reduce((sum, logprob, level) => sum + (level / TOP) * Math.exp(logprob), 0);
      return [Math.log1p(-yes), Math.log(yes)];
    }
    if (options.length > codes.length) {
      throw new AssayError(
        'invalid_value',
        `This model has ${codes.length} labels, and the question has ${options.length} options per choice. Send fewer.`,
      );
    }
    const places = range(options.length);
    const orders = kind === 'choice' && options.length > 1 ? [places, places.toReversed()] : [places];
    const read = yield orders.map((order) => row(prefix, listed(question, order), places));
    const total = options.map(() => 0);
    for (const [i, order] of orders.entries()) {
      const probabilities = logSoftmax(at(read, i), temperatureOf(question)).map(Math.exp);
      for (const [place, option] of order.entries()) total[option] = at(total, option) + at(probabilities, place);
    }
    return total.map((sum) => Math.log(sum / orders.length));
  }

  function listed(question: Question, order: readonly number[]): string {
    const { kind, options } = question;
    const lines = order.map((option, place) => {
      const { name, description } = at(options, option);
      const code = at(codes, place);
      if (kind === 'score') return `${code}. (level ${name} of ${options.length - 1}) ${contentOf(description)}`;
      return `${code}. ${name}${isFalsy(description) ? '' : `: ${contentOf(description)}`}`;
    });
    const best = kind === 'score' ? 'the level that best matches.' : 'the best option.';
    return [...criterion(question), '# Options', ...lines, `\nRespond with only the letter of ${best}`].join('\n');
  }

  function row(prefix: readonly number[], asked: string, labels: readonly number[]): Row {
    const ids = [...prefix, ...text.encode(`${asked}\n${TAIL}`)];
    return { ids, shared: prefix.length, read: { labels } };
  }

  function temperatureOf({ kind, options }: Question): number {
    const type = TYPE_OF[kind];
    const band = options.length <= 8 ? 'small' : options.length <= 26 ? 'mid' : 'large';
    const banded = kind === 'choice' ? temperatures[`choice:A:${band}`] : undefined;
    return banded ?? temperatures[`${type}:A`] ?? 1;
  }

  return {
    // The letters, then the digits from 0 to 8.
    labels: [...codes, ...digits].map((code) => at(text.encode(code), 0)),
    about(state) {
      const evidence = textOrJson(state, { sorted: true });
      const head = `<|im_start|>system\n${SYSTEM}<|im_end|>\n<|im_start|>user\n# Evidence\n${evidence}\n\n`;
      const prefix = text.encode(head);
      return { ask: (question) => ask(prefix, question) };
    },
  };
}

function criterion({ id, instructions }: Question): string[] {
  return [`# Criterion\n${isFalsy(instructions) ? id : textOrJson(instructions)}\n`];
}

function scale(question: Question): string {
  const lines = ['# Scale', '0 = certainly no ... 8 = certainly yes'];
  for (const [name, label] of [
    ['true', 'yes'],
    ['false', 'no'],
  ]) {
    const description = question.options.find((option) => option.name === name)?.description ?? null;
    if (description !== null) lines.push(`${label}: ${contentOf(description)}`);
  }
  return [...criterion(question), ...lines, '\nRespond with only a digit from 0 to 8.'].join('\n');
}

/** Returns a string as it is, any other value as JSON in ASCII with sorted keys. */
function contentOf(value: PyValue): string {
  return textOrJson(value, { sorted: true, ascii: true });
}
