import * as v from 'valibot';
import { at } from '../../lib/at.ts';
import { AssayError } from '../../lib/errors.ts';
import {
  type ContractText,
  chatRows,
  type DecisionContract,
  evenGroups,
  letterCodes,
  logSoftmax,
  type OpenContract,
  type Reading,
  type Row,
  range,
  readLabelTokens,
} from './contract.ts';
import { Count, Ignored, type PublishedFiles, settingsIn, Temperature, TYPE_OF } from './published-files.ts';
import { isPyObject, type PyValue, strip, textOrJson, toJson, withIndices } from './python-json.ts';
import type { Question } from './question.ts';

/*
 * StartLux-Decision: the letters of the options after a chat prompt; a tournament for more than 26 options. Source:
 * StartLuxLabs/StartLux-Decision, `startlux_decision/jevfmt.py` (render `jev_render_v3`) and `model.py`.
 */

const FILE = 'decision_config.json';
const LETTERS = letterCodes().slice(0, 26);
const Settings = v.strictObject({
  render: v.optional(v.literal('jev_render_v3')),
  letter_token_ids: v.pipe(v.array(v.number()), v.length(LETTERS.length)),
  temperature_by_type: v.record(v.picklist(['choice', 'noul', 'score']), Temperature),
  wide_choice: v.optional(
    v.strictObject({
      group: v.optional(v.pipe(Count, v.minValue(2), v.maxValue(LETTERS.length)), 25),
      keep: v.optional(Count, 3),
      residual: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(1)), 1e-3),
    }),
    {},
  ),
  version: Ignored,
  base_model: Ignored,
  revision: Ignored,
  model: Ignored,
});
type Settings = v.InferOutput<typeof Settings>;

const SYSTEM = 'Apply the criterion to the evidence. Choose exactly one listed option. Answer with its letter only.';
const THINKING_OFF = '<think>\n\n</think>\n\n';

/** Returns the contract of a model whose `decision_config.json` lists the ids of letters; null for any other. */
export function findStartlux(files: PublishedFiles): DecisionContract | null {
  const config = files.json[FILE];
  if (typeof config !== 'object' || config === null || !('letter_token_ids' in config)) return null;
  const settings = settingsIn(files, FILE, Settings);
  return {
    info: {
      name: 'startlux',
      version: settings.render ?? 'jev_render_v3',
      temperature: `${FILE}: temperature_by_type`,
    },
    limits: { options: 255, levels: 10 },
    maxTokens: 262_144,
    trueFirst: true,
    confidence: { predicate: 'lead', choice: 'lead', score: 'distance' },
    open: (text) => openStartlux(settings, text),
  };
}

interface Line {
  name: string;
  criterion: string | null;
}

function openStartlux(settings: Settings, text: ContractText): OpenContract {
  const fits = LETTERS.every((letter, i) => {
    const ids = text.encode(letter);
    return ids.length === 1 && ids[0] === settings.letter_token_ids[i];
  });
  if (!fits || !text.chat([{ role: 'user', content: 's' }]).endsWith(THINKING_OFF)) {
    throw new AssayError(
      'engine_failed',
      'The tokenizer does not fit the letters of decision_config.json, or the chat template has no answer without thinking. Download the model again.',
    );
  }
  return {
    labels: settings.letter_token_ids,
    about(state) {
      const shown = stateText(state);
      const evidence = `Evidence:\n${strip(shown) === '' ? '(none)' : shown}`;
      const write = chatRows(text, SYSTEM, evidence);
      return {
        *ask(question): Reading {
          const named = question.options.map(
            ({ name, description }): Line => ({ name, criterion: valueText(description) }),
          );
          if (named.length === 1) return [0];
          return yield* read(settings, question, named, (lines) => {
            const asked = `Question: ${instructionsOf(question)}\nOptions:\n${optionLines(question, lines).join('\n')}`;
            return write(`${evidence}\n\n${asked}`, lines.length);
          });
        },
      };
    },
  };
}

/** Reads any number of options: in groups, then the best of each in a final. */
function* read(
  settings: Settings,
  question: Question,
  lines: readonly Line[],
  row: (lines: readonly Line[]) => Row,
): Reading {
  const temperature = settings.temperature_by_type[TYPE_OF[question.kind]] ?? 1;
  if (lines.length <= LETTERS.length) return yield* readLabelTokens(row(lines), temperature);
  const { group, keep, residual } = settings.wide_choice as Required<Settings['wide_choice']>;
  const groups = evenGroups(lines.length, Math.ceil(lines.length / (group ?? 25)));
  const inner = yield groups.map((members) => row(members.map((i) => at(lines, i))));
  const first: number[] = [];
  const final: number[] = [];
  for (const [g, members] of groups.entries()) {
    const probabilities = logSoftmax(at(inner, g), temperature).map(Math.exp);
    for (const [j, i] of members.entries()) first[i] = at(probabilities, j);
    const ranked = range(members.length).sort((a, b) => at(probabilities, b) - at(probabilities, a));
    final.push(...ranked.slice(0, keep ?? 3).map((j) => at(members, j)));
  }
  const finalLines = final.map((i) => at(lines, i));
  const last = yield* read(settings, question, finalLines, row);
  const finalists = new Map(final.map((i, place) => [i, Math.exp(at(last, place))]));
  const rest = residual ?? 1e-3;
  const mass = first.reduce((sum, p, i) => (finalists.has(i) ? sum : sum + p), 0) || 1;
  const weights = first.map((p, i) => {
    const inFinal = finalists.get(i);
    return inFinal === undefined ? (rest * p) / mass : inFinal * (1 - rest);
  });
  return logSoftmax(weights.map(Math.log));
}

function stateText(state: PyValue): string {
  if (typeof state === 'string') return state;
  const empty =
    state === null || (Array.isArray(state) && state.length === 0) || (isPyObject(state) && state.size === 0);
  return empty ? '' : toJson(withIndices(state));
}

/** Returns the text of a description; null if it has none. */
function valueText(value: PyValue): string | null {
  return value === null ? null : strip(textOrJson(value)) || null;
}

function instructionsOf({ kind, instructions }: Question): string {
  const text = valueText(instructions) ?? '';
  return text === '' && kind === 'predicate' ? 'Which answer fits the evidence?' : text;
}

/** Matches names such as `A`, `(b)`, `3.` and `option_2`, beside which a letter would be ambiguous. */
const BARE = /^(?:\(?[A-Za-z][).]?|\(?\d{1,3}[).]?|option[_ ]?\d{1,3}|opt[_ ]?\d{1,3})$/iu;

function optionLines({ kind }: Question, lines: readonly Line[]): string[] {
  const hidden = kind === 'choice' && lines.every(({ name, criterion }) => BARE.test(name) && criterion !== null);
  return lines.map(({ name, criterion }, i) => {
    const shown = kind === 'predicate' ? (name === 'true' ? 'yes' : 'no') : name;
    const same = criterion === null || folded(criterion) === folded(shown);
    const body = hidden ? criterion : same ? shown : `${shown}: ${criterion}`;
    return `${at(LETTERS, i)}) ${body}`;
  });
}

/** Folds case, and runs of spaces, underscores and hyphens. */
function folded(text: string): string {
  return strip(text.replaceAll(/[\s_-]+/gu, ' ')).toLowerCase();
}
