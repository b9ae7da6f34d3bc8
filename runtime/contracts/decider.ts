import * as v from 'valibot';
import { append } from '../../lib/append.ts';
import { at } from '../../lib/at.ts';
import type { QuestionKind } from '../../lib/backend.ts';
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
import {
  Count,
  Ignored,
  type PublishedFiles,
  RefusedContract,
  settingsIn,
  Temperature,
  TemperatureByType,
  TYPE_OF,
} from './published-files.ts';
import { type PyValue, strip, textOrJson, withIndices } from './python-json.ts';
import type { Question } from './question.ts';

/*
 * decider (Mapika): the letters of the options, at the answer's place. Source: PyPI decider-ai 1.10.0, `prompt.py`,
 * `systemone.py`, `temperature.py`, `serve_vllm.py`.
 */

const FILE = 'decider_config.json';
const LAYOUTS = ['plain', 'chat'] as const;
/** T(n) = max(min, a + b ln n) for n options. */
const ByOptions = v.strictObject({ a: v.number(), b: v.number(), min: v.optional(Temperature, 0.05) });
const Settings = v.strictObject({
  version: v.optional(v.string(), 'dev'),
  temperature: v.optional(v.union([Temperature, v.pipe(v.string(), v.transform(Number), Temperature)]), 1),
  temperature_by_type: v.optional(v.nullable(TemperatureByType)),
  temperature_by_options: v.optional(v.nullable(ByOptions)),
  // These belong to the author's cache of schemas, which puts the questions first and is not used here.
  temperature_schema_first: Ignored,
  temperature_schema_first_by_type: Ignored,
  schema_first_trained: Ignored,
  schema_first: v.optional(v.literal(false), false),
  layout: v.optional(v.nullable(v.picklist(LAYOUTS))),
  chat_template: v.optional(v.nullable(v.boolean())),
  isolated_levels: v.optional(v.boolean(), false),
  neutralize_none: v.optional(v.boolean(), true),
  max_options: v.optional(v.literal(255)),
  max_state_tokens: v.optional(Count, 32_768),
  second_reading: v.optional(
    v.nullable(
      v.strictObject({ below: v.optional(v.number(), 0), temperature_by_options: v.optional(v.nullable(ByOptions)) }),
    ),
  ),
  base: Ignored,
  base_model: Ignored,
  base_revision: Ignored,
  revision: Ignored,
  images: Ignored,
  release_date: Ignored,
  vllm_attention: Ignored,
});
type Settings = v.InferOutput<typeof Settings>;
type ByOptions = v.InferOutput<typeof ByOptions>;

/** Number of labels, and of options up to which a question's text is encoded as a whole. */
const LABELS = 255;
const NARROW = 10;
/** Tokens of a row after the state. */
const QUESTION_TOKENS = 4096;

/** Returns the contract of a model with `decider_config.json`; null for any other. */
export function findDecider(files: PublishedFiles): DecisionContract | null {
  if (!files.paths.has(FILE)) return null;
  const settings = settingsIn(files, FILE, Settings);
  const { layout, chat_template, temperature_by_type, temperature_by_options, second_reading } = settings;
  if (layout === 'plain' && chat_template === true)
    throw new RefusedContract(`its ${FILE} says layout "plain" and chat_template true, which contradict each other`);
  if (temperature_by_options && temperature_by_type && Object.keys(temperature_by_type).length > 0)
    throw new RefusedContract(`its ${FILE} has both temperature_by_options and temperature_by_type`);
  if (second_reading && second_reading.below > 0 && !second_reading.temperature_by_options)
    throw new RefusedContract(`its ${FILE} has second_reading without temperature_by_options`);
  const chat = (layout ?? (chat_template ? 'chat' : 'plain')) === 'chat';
  const key = temperature_by_options
    ? 'temperature_by_options'
    : temperature_by_type
      ? 'temperature_by_type'
      : 'temperature';
  return {
    info: { name: chat ? 'decider-chat' : 'decider', version: settings.version, temperature: `${FILE}: ${key}` },
    limits: { options: LABELS, levels: 10 },
    maxTokens: settings.max_state_tokens + QUESTION_TOKENS,
    confidence: { predicate: 'lead', choice: 'lead', score: 'distance' },
    open: (text) => openDecider(settings, chat, text),
  };
}

function openDecider(settings: Settings, chat: boolean, text: ContractText): OpenContract {
  const table = letterCodes()
    .map((name) => ({ name, ids: text.encode(name) }))
    .filter(({ ids }) => ids.length === 1)
    .slice(0, LABELS);
  if (table.length < LABELS || table.slice(0, 26).some(({ name }) => name.length > 1)) {
    throw new AssayError(
      'engine_failed',
      'The tokenizer has too few single-letter and two-letter tokens for the labels of a decider model. Download the model again.',
    );
  }
  const names = table.map(({ name }) => name);
  const labels = table.map(({ ids }) => at(ids, 0));
  // Ids before and after the user's text, and of what follows them; null for the plain layout.
  const template = chat ? chatParts(text) : null;

  function* ask(context: readonly number[], question: Question): Reading {
    const { isolated_levels, neutralize_none } = settings;
    const asked = instructionsOf(question);
    if (question.kind === 'score' && isolated_levels) {
      const rows = question.options.map(({ description }) => ({
        asked: isolated(asked, description),
        options: NO_YES,
      }));
      return logSoftmax((yield* read(context, rows, 'score')).map((row) => at(row, 1)));
    }
    const options = optionTexts(question).map((text) => (neutralize_none ? withoutNone(text) : text));
    return at(yield* read(context, [{ asked, options }], question.kind), 0);
  }

  /**
   * Returns the log-probabilities of the options of each row. A row whose likeliest option is too unlikely is read
   * again with its options reversed (`second_reading`).
   */
  function* read(
    context: readonly number[],
    rows: readonly Asked[],
    kind: QuestionKind,
  ): Generator<readonly Row[], number[][], readonly (readonly number[])[]> {
    const first = yield rows.map((one) => rowOf(context, one));
    const once = first.map((logits) => logSoftmax(logits, temperatureFor(kind, logits.length)));
    const { below = 0, temperature_by_options: again } = settings.second_reading ?? {};
    const unsure = again ? range(rows.length).filter((i) => Math.exp(Math.max(...at(once, i))) < below) : [];
    if (!again || unsure.length === 0) return once;
    const reversed = yield unsure.map((i) => {
      const { asked, options } = at(rows, i);
      return rowOf(context, { asked, options: options.toReversed() });
    });
    for (const [place, i] of unsure.entries()) {
      const other = logSoftmax(at(reversed, place)).toReversed();
      const both = logSoftmax(at(first, i)).map((logprob, option) => (logprob + at(other, option)) / 2);
      once[i] = logSoftmax(both, temperatureOf(again, both.length));
    }
    return once;
  }

  function rowOf(context: readonly number[], { asked, options }: Asked): Row {
    const { encode } = text;
    const answer = template ? '' : '\nAnswer: (';
    const head = `\n\nQuestion: ${asked}\nOptions:`;
    const ids = [...context];
    if (options.length <= NARROW) {
      const lines = options.map((option, i) => `\n(${at(names, i)}) ${option}`).join('');
      append(ids, template ? [...encode(head), ...encode(lines)] : encode(head + lines + answer));
    } else {
      append(ids, encode(head));
      const open = encode('\n(');
      for (const [i, option] of options.entries()) append(ids, [...open, at(labels, i), ...encode(`) ${option}`)]);
      append(ids, encode(answer));
    }
    if (template) append(ids, [...template.tail, ...encode('Answer: (')]);
    return { ids, shared: context.length, read: { labels: range(options.length) } };
  }

  function temperatureFor(kind: QuestionKind, options: number): number {
    const { temperature, temperature_by_type, temperature_by_options } = settings;
    if (temperature_by_options) return temperatureOf(temperature_by_options, options);
    return temperature_by_type?.[TYPE_OF[kind]] ?? temperature;
  }

  return {
    labels,
    about(state) {
      const { encode } = text;
      const body = encode(`Context:\n${textOrJson(withIndices(state))}`).slice(0, settings.max_state_tokens);
      const context = template ? [...template.head, ...body] : body;
      return { ask: (question) => ask(context, question) };
    },
  };
}

/** Words of one row: the question and its options. */
interface Asked {
  asked: string;
  options: readonly string[];
}

const NO_YES = ['no', 'yes'];

function temperatureOf({ a, b, min }: ByOptions, options: number): number {
  return Math.max(min, a + b * Math.log(Math.max(options, 2)));
}

/** Stands for the user's text while the chat template is rendered. */
const SENTINEL = '@@DECIDER_USER_CONTENT@@';

/** Texts with which a template opens its block for reasoning, and those that close it. */
const OPENED = [
  ['<think>\n', '</think>\n\n'],
  ['<think>', '</think>\n\n'],
  ['<|channel>thought\n', '<channel|>'],
] as const;

function chatParts(text: ContractText): { head: readonly number[]; tail: readonly number[] } {
  const [head = '', rendered = ''] = text.chat([{ role: 'user', content: SENTINEL }]).split(SENTINEL);
  let tail = rendered;
  for (const [opened, closed] of OPENED) if (tail.endsWith(opened)) tail += closed;
  return { head: text.encode(head), tail: text.encode(tail) };
}

function instructionsOf({ kind, instructions }: Question): string {
  if (kind === 'predicate' && (instructions === null || instructions === '')) return 'Which answer fits the context?';
  return textOrJson(instructions);
}

function optionTexts({ kind, options }: Question): string[] {
  return options.map(({ name, description }) => {
    const shown = kind === 'predicate' ? (name === 'true' ? 'yes' : 'no') : name;
    return description === null || description === '' ? shown : `${shown}: ${textOrJson(description)}`;
  });
}

/** Asks whether one level fits, without its number and the other levels. */
function isolated(asked: string, level: PyValue): string {
  const text = textOrJson(level).replace(/^\s*-?\d+\s*:\s*/, '');
  return `${asked}\nProposed answer: ${text}\nDoes the proposed answer fit?`;
}

/** Replaces the words at which older models abstain whatever the question is, as their author does. */
function withoutNone(option: string): string {
  const key = strip(option).toLowerCase();
  const none = key.startsWith('none of the above') || ['none', 'n/a', 'none of these'].includes(key);
  return none ? 'not listed here' : option;
}
