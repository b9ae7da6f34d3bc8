import { join } from 'node:path';
import * as v from 'valibot';
import { append } from '../../lib/append.ts';
import { at } from '../../lib/at.ts';
import {
  type ContractText,
  commonLength,
  type DecisionContract,
  type LastLayer,
  logSoftmax,
  type OpenContract,
  type Reading,
} from './contract.ts';
import { type HeadTensors, readHeadTensors } from './head-tensors.ts';
import { dot, type Norm, stacked, withNorm } from './pointer-head.ts';
import {
  Count,
  Ignored,
  type PublishedFiles,
  RefusedContract,
  settingsIn,
  Temperature,
  TYPE_OF,
} from './published-files.ts';
import { type PyValue, pyObject, textOrJson, toJson } from './python-json.ts';
import type { Question } from './question.ts';

/*
 * Decision 1.0 and 2.0 (vLLM Semantic Router): a head that compares the last token of each option with the last token
 * of the row. Sources: llama.cpp `conversion/decision2.py`; Ollaya `docs/families/decision.md`.
 */

const FILE = 'decision_config.json';
const HEAD = 'decision_head.safetensors';
const BIAS = 'score_bias.json';

/** Prompt of each version: they differ in the words for true and false. */
const VERSIONS = {
  'decision2-segmented-options-global-query-v1': { name: '2.0', no: 'No', yes: 'Yes' },
  'structured-segmented-candidate-endpoints-global-query-v2': {
    name: '1.0',
    no: 'The answer to the question is no.',
    yes: 'The answer to the question is yes.',
  },
} as const;
const Settings = v.strictObject({
  prompt_version: v.picklist([
    'decision2-segmented-options-global-query-v1',
    'structured-segmented-candidate-endpoints-global-query-v2',
  ]),
  head_dim: v.optional(Count, 256),
  head_variant: v.optional(v.literal('shared')),
  max_options: v.optional(v.literal(255)),
  architecture: Ignored,
  checkpoint_format: Ignored,
  head_precision: Ignored,
  base_model: Ignored,
  base_revision: Ignored,
  backbone: Ignored,
  version: Ignored,
});
/** `config.json` of Decision 2.0. */
const Package = v.looseObject({
  model_type: v.literal('decision2'),
  package_schema: v.optional(v.literal('dev2-package/1')),
  calibration: v.optional(v.null()),
  max_input_tokens: v.optional(Count, 16_384),
  model_config: v.optional(v.literal(FILE)),
  decision_weights: v.optional(v.strictObject({ decision_head: v.literal(HEAD) })),
  backbone: v.optional(v.looseObject({ repository: v.optional(v.string()), revision: v.nullish(v.string()) })),
});
const ScoreBias = v.strictObject({
  format: v.literal('dev2-score-bias-v1'),
  offsets: v.record(v.pipe(v.string(), v.regex(/^[1-9]\d{0,2}$/)), v.array(v.pipe(v.number(), v.finite()))),
});
const ByType = v.looseObject({ choice: Temperature, noul: Temperature, score: Temperature });

/** Returns the contract of a model with an endpoint head; null for any other. */
export function findDecision(files: PublishedFiles, repository: string): DecisionContract | null {
  if (!files.paths.has(HEAD)) return null;
  const settings = settingsIn(files, FILE, Settings);
  const version = VERSIONS[settings.prompt_version];
  const second = version.name === '2.0';
  const published = second ? settingsIn(files, 'config.json', Package) : null;
  const maxTokens = published?.max_input_tokens ?? 16_384;
  const base = published?.backbone;
  const bias = second && files.paths.has(BIAS) ? settingsIn(files, BIAS, ScoreBias).offsets : {};
  const shipped = second
    ? { temperature: 1, from: `${BIAS}: offsets for scores, no temperature` }
    : temperatureOf(files);
  // The author's runtime shows the label of this model's options that have no description.
  const nullAsName = /Decision-1\.0-Nox/iu.test(repository);
  return {
    ...(base?.repository ? { base: { repository: base.repository, revision: base.revision ?? null } } : {}),
    info: { name: 'decision', version: version.name, temperature: shipped.from },
    limits: { options: 255, levels: second ? 255 : 10 },
    maxTokens,
    confidence: second
      ? { predicate: 'entropy', choice: 'entropy', score: 'entropy' }
      : { predicate: 'lead', choice: 'lead', score: 'lead' },
    lastLayer: (folder) => readLayer(readHeadTensors(join(folder, HEAD)), settings.head_dim),
    open: (text, folder) => {
      const scalar = readHeadTensors(join(folder, HEAD)).tensor('scalar.weight', [1, settings.head_dim]);
      return openDecision(
        { ...version, dim: settings.head_dim, scalar, bias, nullAsName, temperature: shipped.temperature },
        text,
      );
    },
  };
}

/** Finds the temperature of Decision 1.0, which is the same for all types of questions. */
function temperatureOf(files: PublishedFiles): { temperature: number; from: string } {
  for (const file of ['temperature.json', 'runtime.json']) {
    const json = files.json[file];
    if (typeof json !== 'object' || json === null) continue;
    const { temperature, temperatures, temperature_by_type } = json as Readonly<Record<string, unknown>>;
    for (const found of [temperature, temperatures, temperature_by_type, json]) {
      if (v.is(Temperature, found)) return { temperature: found, from: `${file}: temperature` };
      if (!v.is(ByType, found)) continue;
      const { choice, noul, score } = found;
      if (choice === noul && noul === score) return { temperature: choice, from: `${file}: temperature` };
      throw new RefusedContract(`its ${file} has different temperatures by type, which Decision 1.0 does not define`);
    }
  }
  throw new RefusedContract('it has no temperature in temperature.json or runtime.json');
}

function readLayer(tensors: HeadTensors, dim: number): LastLayer {
  tensors.expectOnly(
    ...['candidate_norm', 'query_norm'].flatMap((norm) => [`${norm}.weight`, `${norm}.bias`]),
    ...['key', 'query', 'candidate_mlp', 'query_mlp', 'scalar'].map((name) => `${name}.weight`),
    'candidate_mlp.bias',
  );
  const norm = (name: string): Norm => ({
    gain: tensors.tensor(`${name}_norm.weight`, [null]),
    bias: tensors.tensor(`${name}_norm.bias`, [null]),
  });
  const candidate = norm('candidate');
  const query = norm('query');
  const none = new Float32Array(dim);
  const projection = (name: string, before: Norm, bias: Float32Array = none) =>
    withNorm({ weight: tensors.tensor(`${name}.weight`, [dim, null]), bias }, before);
  return stacked(
    dim,
    [
      projection('key', candidate),
      projection('candidate_mlp', candidate, tensors.tensor('candidate_mlp.bias', [dim])),
      projection('query', query),
      projection('query_mlp', query),
    ],
    true,
  );
}

interface OpenSettings {
  no: string;
  yes: string;
  dim: number;
  scalar: Float32Array;
  bias: Readonly<Record<string, readonly number[]>>;
  nullAsName: boolean;
  temperature: number;
}

function openDecision(settings: OpenSettings, { encode }: ContractText): OpenContract {
  const { temperature, bias } = settings;
  return {
    labels: null,
    combine: (options, decide) => options.map((option) => endpointLogit(settings, option, decide)),
    about(state) {
      const context = `Context:\n${payload(state)}`;
      const start = encode(context);
      return {
        *ask(question: Question): Reading {
          const { kind } = question;
          const head = `${context}\n\nTask type: ${TYPE_OF[kind]}\nQuestion:\n${payload(question.instructions)}\nOptions:`;
          const ids = [...encode(head)];
          const shared = commonLength(ids, start);
          const options = optionTexts(settings, question).map((text) => {
            append(ids, encode(`\n<option>\n${text}\n</option>`));
            return ids.length - 1;
          });
          append(
            ids,
            encode('\n\nSelect the single option best supported by the context and instructions.\nDecision:'),
          );
          const [logits = []] = yield [{ ids, shared, read: { options, decide: ids.length - 1 } }];
          const offsets = kind === 'score' ? bias[String(options.length)] : undefined;
          return logSoftmax(offsets ? logits.map((logit, i) => logit + at(offsets, i)) : logits, temperature);
        },
      };
    },
  };
}

function optionTexts({ no, yes, nullAsName }: OpenSettings, { kind, options }: Question): string[] {
  return options.map(({ name, description, absent }) => {
    const unsaid = kind === 'predicate' && absent ? (name === 'true' ? yes : no) : null;
    const shown = description ?? (kind === 'choice' && nullAsName ? name : unsaid);
    return toJson(pyObject(['description', shown], ['key', name]), { compact: true, sorted: true });
  });
}

/** Returns an option's logit: bilinear with the query, and a small network over both. */
function endpointLogit({ dim, scalar }: OpenSettings, option: Float32Array, decide: Float32Array): number {
  const part = (row: Float32Array, index: number) => row.subarray(index * dim, (index + 1) * dim);
  const bilinear = dot(part(option, 0), part(decide, 2)) / Math.sqrt(dim);
  const [own, asked] = [part(option, 1), part(decide, 3)];
  return own.reduce((sum, value, i) => sum + at(scalar, i) * gelu(value + at(asked, i)), bilinear);
}

/** Returns x Φ(x), the exact form. */
function gelu(x: number): number {
  return 0.5 * x * (1 + erf(x / Math.SQRT2));
}

/** Returns the error function, within 1.2e-16 of its value. Source: W. J. Cody, 1969, by its series and fraction. */
function erf(x: number): number {
  const y = Math.abs(x);
  if (y > 6) return Math.sign(x);
  // Below 3 the series converges quickly; above, the continued fraction of erfc does.
  if (y < 3) {
    let term = y;
    let sum = y;
    for (let n = 1; Math.abs(term) > 1e-17 * sum; n++) {
      term *= -(y * y) / n;
      sum += term / (2 * n + 1);
    }
    return (Math.sign(x) * 2 * sum) / Math.sqrt(Math.PI);
  }
  let fraction = 0;
  for (let n = 60; n > 0; n--) fraction = n / 2 / (y + fraction);
  return Math.sign(x) * (1 - Math.exp(-y * y) / Math.sqrt(Math.PI) / (y + fraction));
}

/** Returns a string as it is, any other value as compact JSON with sorted keys. */
function payload(value: PyValue): string {
  return textOrJson(value, { compact: true, sorted: true });
}
