import * as v from 'valibot';
import { at } from '../../lib/at.ts';
import {
  type ContractText,
  chatRows,
  type DecisionContract,
  evenGroups,
  letterCodes,
  letterIds,
  logSoftmax,
  type OpenContract,
  type Reading,
  range,
} from './contract.ts';
import { Ignored, type PublishedFiles, settingsIn, Temperature } from './published-files.ts';
import { isFalsy, type PyValue, pyObject, pythonText, toJson } from './python-json.ts';
import type { Question } from './question.ts';

/*
 * JevK5: the decision as JSON in a chat, and the letters of its options; a knockout for more than 16. Source:
 * allebee/jevk5, `jevk5/{prompt,many,runtime}.py`.
 */

const FILE = 'jevk5_config.json';
const Settings = v.strictObject({
  temperature: v.optional(Temperature, 1),
  knockout_temperature: v.optional(Temperature, 0.77),
  version: v.optional(v.string()),
  base_model: Ignored,
  base: Ignored,
  revision: Ignored,
  method: v.optional(v.literal('knockout')),
});
type Settings = v.InferOutput<typeof Settings>;

const LETTERS = letterCodes().slice(0, 16);
const SYSTEM =
  'Apply the supplied criterion to the supplied evidence. Choose exactly one listed option. Respond with only its uppercase letter, with no explanation or reasoning.';

/** Returns the contract of a model with `jevk5_config.json`; null for any other. */
export function findJevk5(files: PublishedFiles): DecisionContract | null {
  if (!files.paths.has(FILE)) return null;
  const settings = settingsIn(files, FILE, Settings);
  return {
    info: { name: 'jevk5', version: settings.version ?? null, temperature: `${FILE}: temperature` },
    limits: { options: 255, levels: 255 },
    maxTokens: 262_144,
    trueFirst: true,
    confidence: { predicate: 'highest', choice: 'highest', score: 'highest' },
    open: (text) => openJevk5(settings, text),
  };
}

function openJevk5({ temperature, knockout_temperature }: Settings, text: ContractText): OpenContract {
  return {
    labels: letterIds(text, LETTERS),
    about(state) {
      const write = chatRows(text, SYSTEM, `{"evidence": ${toJson(state)}`);
      const row = (criterion: PyValue, texts: readonly string[]) => {
        const options = texts.map((description, i) =>
          pyObject(['letter', at(LETTERS, i)], ['description', description]),
        );
        const payload = pyObject(['evidence', state], ['criterion', criterion], ['options', options]);
        return write(toJson(payload), texts.length);
      };

      /** Reads any number of options: in groups, then the best of each in a final. Returns their probabilities. */
      function* read(
        criterion: PyValue,
        texts: readonly string[],
      ): Generator<ReturnType<typeof row>[], number[], readonly (readonly number[])[]> {
        if (texts.length <= LETTERS.length) {
          const [logits = []] = yield [row(criterion, texts)];
          return logSoftmax(logits, temperature).map(Math.exp);
        }
        const runs = evenGroups(texts.length, Math.ceil(texts.length / LETTERS.length));
        const rows = runs.map((run) =>
          row(
            criterion,
            run.map((i) => at(texts, i)),
          ),
        );
        const inner = (yield rows).map((logits) => logSoftmax(logits, temperature).map(Math.exp));
        const final = finalists(inner, Math.max(1, Math.floor(LETTERS.length / runs.length)));
        const places = final.flatMap((top, g) => top.map((j) => at(at(runs, g), j)));
        const last = yield* read(
          criterion,
          places.map((i) => at(texts, i)),
        );
        let next = 0;
        const shares = final.map((top) => new Map(top.map((j) => [j, at(last, next++)])));
        const massOf = (share: ReadonlyMap<number, number>) => [...share.values()].reduce((sum, p) => sum + p, 0);
        const inFinal = inner.reduce((sum, probabilities, g) => {
          const share = at(shares, g);
          return sum + massOf(share) * [...share.keys()].reduce((total, j) => total + at(probabilities, j), 0);
        }, 0);
        const weights = inner.flatMap((probabilities, g) => {
          const share = at(shares, g);
          const mass = massOf(share);
          return probabilities.map((p, j) => {
            const own = share.get(j);
            return own === undefined ? mass * p : own * inFinal;
          });
        });
        const total = weights.reduce((sum, weight) => sum + weight, 0);
        return weights.map((weight) => weight / total);
      }

      return {
        *ask(question: Question): Reading {
          const texts = optionTexts(question);
          const probabilities = yield* read(question.instructions ?? '', texts);
          const logprobs = probabilities.map(Math.log);
          return texts.length <= LETTERS.length ? logprobs : logSoftmax(logprobs, knockout_temperature);
        },
      };
    },
  };
}

/** Returns the places of the `keep` best options of each group, and of the next best ones while the final has room. */
function finalists(groups: readonly (readonly number[])[], keep: number): number[][] {
  const ranked = groups.map((probabilities) =>
    range(probabilities.length).sort((a, b) => at(probabilities, b) - at(probabilities, a)),
  );
  const chosen = ranked.map((order) => order.slice(0, keep));
  const free = LETTERS.length - chosen.reduce((sum, { length }) => sum + length, 0);
  const rest = ranked
    .flatMap((order, group) => order.slice(keep).map((option) => ({ group, option })))
    .sort((a, b) => at(at(groups, b.group), b.option) - at(at(groups, a.group), a.option));
  for (const { group, option } of rest.slice(0, Math.max(0, free))) at(chosen, group).push(option);
  return chosen.map((places) => places.sort((a, b) => a - b));
}

function optionTexts({ kind, options }: Question): string[] {
  return options.map(({ name, description }) => {
    if (kind === 'score') return `${name}: ${pythonText(description)}`;
    const missing = kind === 'predicate' ? `The proposition is ${name}.` : name;
    return `${name}: ${isFalsy(description) ? missing : pythonText(description)}`;
  });
}
