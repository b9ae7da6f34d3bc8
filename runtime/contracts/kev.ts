import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { append } from '../../lib/append.ts';
import { at } from '../../lib/at.ts';
import {
  type ContractText,
  type DecisionContract,
  type LastLayer,
  logSoftmax,
  type OpenContract,
  type Reading,
} from './contract.ts';
import { pointerLayer, pointerLogits } from './pointer-head.ts';
import { Count, type PublishedFiles, settingsIn, Temperature } from './published-files.ts';
import { isPyObject, lstrip, PyNumber, type PyValue } from './python-json.ts';
import type { Question } from './question.ts';
import { readTorchFile, TorchTensor } from './torch-file.ts';

/*
 * Kev (Jared Palmer): a LoRA adapter on a base model, and a pointer from the deciding token to the end of each option.
 * Source: jaredpalmer/kev, `kev/{api,encoding,model,checkpoint}.py`.
 */

const FILE = 'head.pt';
const Tensor = v.instance(TorchTensor);
/** Contents of `head.pt`. Keys besides these tell how the model was trained. */
const Settings = v.looseObject({
  base: v.string(),
  base_revision: v.nullish(v.string()),
  head: v.strictObject({ 'q.weight': Tensor, 'q.bias': Tensor, 'k.weight': Tensor, 'k.bias': Tensor }),
  head_dim: v.optional(Count, 256),
  option_isolation: v.optional(v.literal(false), false),
  special_embeddings: v.optional(v.literal(false), false),
  weights_dtype: v.optional(v.picklist(['fp32', 'bf16']), 'fp32'),
  temperature: v.optional(Temperature, 1),
});

/** Maximum number of tokens of the state and of a whole row, as the author serves it. */
const ROW_TOKENS = 8192;
const STATE = '<|fim_prefix|>';
const QUESTION = '<|fim_middle|>';
const OPEN = '<|box_start|>';
const CLOSE = '<|box_end|>';
const DECIDE = '<|fim_suffix|>';

/** Returns the contract of a LoRA adapter with `head.pt`; null for any other model. */
export function findKev(files: PublishedFiles): DecisionContract | null {
  if (!files.paths.has(FILE) || !files.paths.has('adapter_config.json') || files.paths.has('export.json')) return null;
  const { temperature, base, base_revision } = settingsIn(files, FILE, Settings);
  return {
    base: { repository: base, revision: base_revision ?? null },
    info: { name: 'kev', version: null, temperature: `${FILE}: temperature` },
    limits: { options: 255, levels: 255 },
    maxTokens: ROW_TOKENS,
    confidence: { predicate: 'lead', choice: 'lead', score: 'spread' },
    lastLayer: (folder) => layerOf(readHead(folder)),
    open: (text, folder) => openKev(temperature, readHead(folder).head_dim, text),
  };
}

function readHead(folder: string): v.InferOutput<typeof Settings> {
  const json = { [FILE]: readTorchFile(readFileSync(join(folder, FILE))) };
  return settingsIn({ paths: new Set([FILE]), json }, FILE, Settings);
}

function layerOf({ head, head_dim }: v.InferOutput<typeof Settings>): LastLayer {
  const values = (name: keyof typeof head) => at([head[name]], 0).values;
  return pointerLayer(head_dim, {
    query: { weight: values('q.weight'), bias: values('q.bias') },
    key: { weight: values('k.weight'), bias: values('k.bias') },
  });
}

function openKev(temperature: number, dim: number, { encode, token }: ContractText): OpenContract {
  return {
    labels: null,
    combine: (options, decide) => pointerLogits(dim, options, decide),
    about(state) {
      const user = (text: string) => encode(text.replaceAll(/<\|([A-Za-z0-9_]+)\|>/g, '<\u00a6$1\u00a6>'));
      const prefix = [token(STATE), ...user(render(state)).slice(0, ROW_TOKENS - 1)];
      return {
        *ask(question: Question): Reading {
          const ids = [...prefix, token(QUESTION), ...user(render(question.instructions))];
          const options = optionTexts(question).map((text) => {
            append(ids, [token(OPEN), ...user(text), token(CLOSE)]);
            return ids.length - 1;
          });
          const decide = ids.push(token(DECIDE)) - 1;
          const [logits = []] = yield [{ ids, shared: prefix.length, read: { options, decide } }];
          return logSoftmax(logits, temperature);
        },
      };
    },
  };
}

function optionTexts({ kind, options }: Question): string[] {
  return options.map(({ name, description }) => {
    if (kind === 'score') return render(description);
    const shown = kind === 'predicate' ? (name === 'true' ? 'yes' : 'no') : name;
    return description === null || description === '' ? shown : `${shown}: ${render(description)}`;
  });
}

/** Writes a value as indented text, with the names of members as labels. */
function render(value: PyValue, indent = 0): string {
  const pad = '  '.repeat(indent);
  if (value === null) return '';
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (value instanceof PyNumber) return value.text;
  if (!isPyObject(value)) return value.map((item) => `${pad}- ${lstrip(render(item, indent + 1))}`).join('\n');
  return [...value]
    .map(([name, item]) => {
      const nested = Array.isArray(item) || isPyObject(item);
      return nested ? `${pad}${name}:\n${render(item, indent + 1)}` : `${pad}${name}: ${render(item)}`;
    })
    .join('\n');
}
