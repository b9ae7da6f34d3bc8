import { join } from 'node:path';
import * as v from 'valibot';
import { at } from '../../lib/at.ts';
import { AssayError } from '../../lib/errors.ts';
import { ADAPTER_WEIGHTS } from '../store/model-files.ts';
import {
  type ContractText,
  type DecisionContract,
  type LastLayer,
  logSoftmax,
  type OpenContract,
  type Reading,
} from './contract.ts';
import { readHeadTensors } from './head-tensors.ts';
import { pointerLayer, pointerLogits } from './pointer-head.ts';
import {
  Count,
  Ignored,
  type PublishedFiles,
  RefusedContract,
  settingsIn,
  Temperature,
  TYPE_OF,
} from './published-files.ts';
import { type PyValue, splitWords, strip, textOrJson } from './python-json.ts';
import type { Question } from './question.ts';

/*
 * Strands Decider v1 (Amazon): a LoRA adapter on a base model, and a pointer from the answer's place to the last token
 * of each option's line. Source: PyPI strands-decider 0.2.0, `prompting.py`, `modeling.py`, `infer.py`, `schema.py`.
 */

const FILES = ['strands_decider_config.json', 'hobson_config.json'] as const;
const HEAD = 'head.safetensors';
const Settings = v.strictObject({
  base_model: v.string(),
  base_revision: v.nullish(v.string()),
  head_type: v.literal('pointer'),
  pointer_dim: v.optional(Count, 256),
  max_length: v.optional(Count, 3072),
  temperature: v.optional(Temperature, 1),
  temperature_by_kind: v.optional(v.record(v.picklist(['noul', 'choice', 'score']), Temperature), {}),
  ordinal_smoothing: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(1)), 0),
  use_lora: v.optional(v.literal(true)),
  force_bos: v.optional(v.literal(false)),
  full_weight_targets: v.optional(v.pipe(v.array(v.string()), v.length(0))),
  num_slots: Ignored,
  head_hidden: Ignored,
  head_dropout: Ignored,
  torch_dtype: Ignored,
  head_init: Ignored,
  kl_frozen_weight: Ignored,
  // The adapter's own configuration states these.
  lora_r: Ignored,
  lora_alpha: Ignored,
  lora_dropout: Ignored,
  lora_targets: Ignored,
  host_embeddings: Ignored,
});
type Settings = v.InferOutput<typeof Settings>;
/** File that tells how the model was made. */
const PROVENANCE = 'provenance.json';
const Provenance = v.looseObject({ base_model_revision: v.nullish(v.string()) });

const HEADERS = {
  predicate: 'Decide whether the statement is true of the state.',
  choice: 'Select exactly one option.',
  score: 'Rate the state against the ordered levels below (lowest first).',
};
const DEFAULTS: Readonly<Record<string, string>> = {
  false: 'the statement does not hold for this state',
  true: 'the statement holds for this state',
};

/** Returns the contract of a model with Strands' configuration; null for any other. */
export function findStrands(files: PublishedFiles): DecisionContract | null {
  const file = FILES.find((name) => files.paths.has(name));
  if (file === undefined) return null;
  const settings = settingsIn(files, file, Settings);
  if (!files.paths.has(HEAD)) throw new RefusedContract(`it has no ${HEAD}; older heads in slot_head.pt are not read`);
  const weights = [...files.paths].filter((path) => path.endsWith('.safetensors') && path !== HEAD);
  if (weights.length > 0 && !weights.some((path) => path.endsWith(ADAPTER_WEIGHTS)))
    throw new RefusedContract(`it has weights of its own but no ${ADAPTER_WEIGHTS}, which its base model needs`);
  const { base_model, base_revision, temperature_by_kind, pointer_dim, ordinal_smoothing } = settings;
  const trained = v.is(Provenance, files.json[PROVENANCE]) ? files.json[PROVENANCE].base_model_revision : null;
  const byKind = Object.keys(temperature_by_kind).length > 0;
  return {
    base: { repository: base_model, revision: base_revision ?? trained ?? null },
    info: {
      name: 'strands',
      version: 'v1 pointer',
      temperature: `${file}: ${byKind ? 'temperature_by_kind' : 'temperature'}`,
    },
    limits: { options: 255, levels: 10 },
    maxTokens: settings.max_length,
    dependence: "its author's code cuts a long state to what the longest question of a request leaves",
    confidence: { predicate: 'lead', choice: 'lead', score: { deviation: Math.sqrt(ordinal_smoothing) } },
    lastLayer: (folder) => readLayer(join(folder, HEAD), pointer_dim),
    open: (text) => openStrands(settings, text),
  };
}

function readLayer(file: string, dim: number): LastLayer {
  const tensors = readHeadTensors(file);
  tensors.expectOnly('norm.weight', 'norm.bias', 'q.weight', 'q.bias', 'k.weight', 'k.bias');
  const projection = (name: string) => ({
    weight: tensors.tensor(`${name}.weight`, [dim, null]),
    bias: tensors.tensor(`${name}.bias`, [dim]),
  });
  const norm = { gain: tensors.tensor('norm.weight', [null]), bias: tensors.tensor('norm.bias', [null]) };
  return pointerLayer(dim, { query: projection('q'), key: projection('k'), norm });
}

function openStrands(settings: Settings, text: ContractText): OpenContract {
  const { temperature, temperature_by_kind, max_length, pointer_dim } = settings;
  const { encode, begin } = text;
  return {
    labels: null,
    combine: (options, decide) => pointerLogits(pointer_dim, options, decide),
    about(state, questions) {
      const whole = [...(begin === null ? [] : [begin]), ...encode(`<state>\n${contentOf(state)}\n</state>\n`)];
      const suffixes = new Map<Question, Suffix>();
      const suffix = (question: Question): Suffix => {
        const found = suffixes.get(question) ?? suffixOf(text, question);
        suffixes.set(question, found);
        return found;
      };
      return {
        *ask(question: Question): Reading {
          const { kind } = question;
          // What does not fit is cut as the author's engine cuts it: the front of a question that takes more than its
          // share, and the end of the state, by the longest of the questions that the engine reads together.
          const index = questions.findIndex(({ task }) => task === question.task);
          const first = index - (index % BATCH);
          const longest = Math.max(...questions.slice(first, first + BATCH).map((one) => suffix(one).ids.length));
          const reserve = Math.min(longest, Math.max(1, Math.floor(max_length * QUESTION_SHARE)));
          const prefix = whole.slice(0, Math.max(1, max_length - reserve));
          const { ids: own, options } = suffix(question);
          const cut = Math.max(0, own.length - reserve);
          if (options.some((place) => place < cut)) {
            const message = `The options do not fit in this model's context window of ${max_length} tokens. Send fewer or shorter ones.`;
            throw new AssayError('input_too_long', message);
          }
          const ids = [...prefix, ...own.slice(cut)];
          const read = { options: options.map((place) => prefix.length + place - cut), decide: ids.length - 1 };
          const [logits = []] = yield [{ ids, shared: prefix.length, read }];
          return logSoftmax(logits, temperature_by_kind[TYPE_OF[kind]] ?? temperature);
        },
      };
    },
  };
}

/** Holds the ids of a question, and the place of the last token of each option's line. */
interface Suffix {
  ids: readonly number[];
  options: readonly number[];
}

function suffixOf(text: ContractText, question: Question): Suffix {
  const { kind, instructions } = question;
  const head = `<question type="${TYPE_OF[kind]}">\n${HEADERS[kind]}\n${contentOf(instructions)}\n<options>\n`;
  const lines = optionLines(question);
  // Each line is a part of its own, with the line break that follows it as the next part.
  const parts = [head, ...lines.flatMap((line) => [line, '\n']), '</options>\n</question>\n<answer>'];
  const { ids, last } = text.encodeParts(parts);
  const options = lines.map((_, i) => {
    const place = at(last, 1 + 2 * i);
    if (place >= 0) return place;
    throw new AssayError('invalid_value', 'An option has no token of its own. Give it another text.');
  });
  return { ids, options };
}

/** Number of questions that the author's engine reads together. */
const BATCH = 32;
/** Largest share of the context window that a question may take. */
const QUESTION_SHARE = 0.75;

function contentOf(value: PyValue): string {
  return value === null ? '' : strip(textOrJson(value, { indent: 2 }));
}

function optionLines({ kind, options }: Question): string[] {
  return options.map(({ name, description, absent }, i) => {
    const described = kind === 'predicate' && absent ? (DEFAULTS[name] ?? '') : contentOf(description);
    const words = splitWords(described).join(' ');
    return `${i + 1}. ${name}${words === '' ? '' : ` \u2014 ${words}`}`;
  });
}
