import * as v from 'valibot';
import { append } from '../../lib/append.ts';
import { at } from '../../lib/at.ts';
import { AssayError } from '../../lib/errors.ts';
import {
  type ContractText,
  type DecisionContract,
  type Field,
  logSoftmax,
  type OpenContract,
  type Reading,
  type Row,
  type Span,
} from './contract.ts';
import { Count, Ignored, type PublishedFiles, RefusedContract, settingsIn, TYPE_OF } from './published-files.ts';
import { compareCodePoints, type PyValue, pyObject, textOrJson } from './python-json.ts';
import type { Question } from './question.ts';

/*
 * Clef (Cloudflare): all questions of a request in one prompt, and a second network that answers them together from the
 * states of all tokens. Source: `joint_schema_model.py` of Cloudflare/clef, as PyPI clef-finetune 0.1.0 has it.
 */

const FILE = 'joint_head_config.json';
const HEAD = 'joint_head.safetensors';
const Settings = v.strictObject({
  hidden_size: Count,
  width: Count,
  routing_layers: Count,
  layers: Count,
  heads: Count,
  feedforward: Count,
  dropout: Ignored,
});

const MOST_TOKENS = 16_384;
const BEFORE =
  "<|im_start|>system\nRead the complete state and schema. Decide every field jointly. Each answer must be exactly one of that field's allowed options.<|im_end|>\n<|im_start|>user\nSTATE:\n";
const AFTER = '\n<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nJOINT SCHEMA DECISIONS:';
const DEFAULTS: Readonly<Record<string, string>> = {
  true: 'The proposition is true or the answer is yes.',
  false: 'The proposition is false or the answer is no.',
};

/** Returns the contract of a model with a joint head; null for any other. */
export function findClef(files: PublishedFiles): DecisionContract | null {
  if (!files.paths.has(FILE)) return null;
  const { hidden_size: hidden, width, routing_layers, layers, heads, feedforward } = settingsIn(files, FILE, Settings);
  if (!files.paths.has(HEAD)) throw new RefusedContract(`it has no ${HEAD}`);
  return {
    info: { name: 'clef', version: null, temperature: 'none: the author states no temperature' },
    limits: { options: 255, levels: 255 },
    maxTokens: MOST_TOKENS,
    trueFirst: true,
    confidence: { predicate: 'highest', choice: 'highest', score: 'highest' },
    dependence: 'its prompt has all questions of a request',
    whole: 'causal',
    joint: { file: HEAD, hidden, width, routingLayers: routing_layers, layers, heads, inner: feedforward },
    open: (text) => openClef(text),
  };
}

function openClef(text: ContractText): OpenContract {
  return {
    labels: null,
    about(state, questions) {
      const fields = questions.map(sortedField);
      const row = rowOf(text, state, fields);
      const first = fields.map((_, i) => fields.slice(0, i).reduce((sum, { options }) => sum + options.length, 0));
      return {
        *ask({ task, options }): Reading {
          const index = fields.findIndex((field) => field.task === task);
          const field = at(fields, index);
          const [logits = []] = yield [row];
          const from = at(first, index);
          const logprobs = logSoftmax(logits.slice(from, from + field.options.length));
          return options.map(({ name }) =>
            at(
              logprobs,
              field.options.findIndex((option) => option.name === name),
            ),
          );
        },
      };
    },
  };
}

function rowOf({ encode }: ContractText, state: PyValue, questions: readonly Question[]): Row {
  const schema = [...encode('\n\nSCHEMA FIELDS:\n')];
  const add = (text: string): Span => {
    const from = schema.length;
    append(schema, encode(text));
    return [from, schema.length];
  };
  const fields = questions.map((question, i): Field => {
    const { id, kind, instructions, options } = question;
    add(`\nFIELD ${i + 1}\nID: ${id}\nTYPE: ${TYPE_OF[kind]}\nINSTRUCTION: `);
    const asked = add(instructions === null || instructions === '' ? id : written(instructions));
    add('\nALLOWED OPTIONS:\n');
    const spans = options.map((option, k) => {
      add(`OPTION ${k + 1}: `);
      const span = add(optionText(question, option));
      add('\n');
      return span;
    });
    add('END FIELD\n');
    return { kind, question: asked, options: spans };
  });
  const [before, after] = [encode(BEFORE), encode(AFTER)];
  const room = MOST_TOKENS - before.length - schema.length - after.length;
  if (room < 0) {
    const message = `The questions have ${MOST_TOKENS - room} tokens, and this model reads at most ${MOST_TOKENS}. Send fewer or shorter ones.`;
    throw new AssayError('input_too_long', message);
  }
  // As the author's code does, the end of a state that does not fit is left out.
  const shown = [...before, ...encode(written(state)).slice(0, room)];
  const moved = ([from, to]: Span): Span => [from + shown.length, to + shown.length];
  return {
    ids: [...shown, ...schema, ...after],
    shared: shown.length,
    read: {
      joint: fields.map(({ kind, question, options }) => ({
        kind,
        question: moved(question),
        options: options.map(moved),
      })),
    },
  };
}

/** Returns a question with the options of a choice in the order of their names. */
function sortedField(question: Question): Question {
  if (question.kind !== 'choice') return question;
  return { ...question, options: question.options.toSorted((a, b) => compareCodePoints(a.name, b.name)) };
}

function optionText({ kind }: Question, { name, description, absent }: Question['options'][number]): string {
  const described = kind === 'predicate' && absent ? (DEFAULTS[name] ?? null) : description;
  return written(
    pyObject(...(described === null ? [] : [['description', described] as [string, PyValue]]), ['option_id', name]),
  );
}

/** Returns a string as it is, any other value as compact JSON with sorted keys. */
function written(value: PyValue): string {
  return textOrJson(value, { compact: true, sorted: true });
}
