import { at } from '../../../lib/at.ts';
import { logprobsOf, normalised } from '../../../lib/tasks/logprobs.ts';
import { decidesOnly } from '../../contracts/contract.ts';
import type { ContractOf } from '../../contracts/encoder-contracts.ts';
import { textOrJson } from '../../contracts/python-json.ts';
import type { Question } from '../../contracts/question.ts';
import { type Adapter, type EncoderRow, tooLong } from '../adapter.ts';
import type { EncoderTokenizer } from '../encoder-tokenizer.ts';

/*
 * Models that read one row for each option, a pair of the state and a text about the option: cross-encoders for natural
 * language inference (NLI), and Open-Decision.
 */

/**
 * Creates the adapter of an NLI model: the state is the premise, and the answer is the hypothesis that follows best
 * from it. The texts of the hypotheses are those with which the models are used for decisions (Ollaya).
 */
export function nliAdapter(contract: ContractOf<'nli'>, tokenizer: EncoderTokenizer): Adapter {
  const { maxTokens, entailment, against } = contract;
  const [before, between, after] = tokenizer.pair;
  const added = before.length + between.length + after.length;
  return {
    capabilities: decidesOnly(maxTokens),
    *decide(questions, state, _, planned) {
      const premise = yield* tokenizer.encodeInParts(textOrJson(state));
      const first = [...before, ...premise, ...between];
      for (const question of questions) {
        const rows: EncoderRow[] = [];
        for (const text of hypotheses(question, contract.hypothesis)) {
          const hypothesis = yield* tokenizer.encodeInParts(text);
          const length = added + premise.length + hypothesis.length;
          if (length > maxTokens) throw tooLong(length, maxTokens);
          rows.push({ ids: [...first, ...hypothesis, ...after], shared: premise.length, secondFrom: first.length });
        }
        planned({
          rows,
          read(outputs) {
            const entailed = outputs.map(({ logits = EMPTY }) => at(logits, entailment));
            // A statement on its own either follows, or not: "yes" and "no" are two classes of one row.
            if (question.kind === 'predicate' && outputs.length === 1) {
              const [{ logits = EMPTY } = {}] = outputs;
              return { logprobs: normalised([at(logits, entailment), at(logits, against)]) };
            }
            const logprobs = normalised(entailed);
            return { logprobs: question.kind === 'predicate' ? logprobs.reverse() : logprobs };
          },
        });
      }
    },
  };
}

const EMPTY = new Float32Array();

/**
 * Returns the hypotheses for a question in the order of its options. For a predicate, those that it is false and true;
 * without both descriptions, only the statement itself.
 */
function hypotheses({ kind, instructions, options }: Question, style: ContractOf<'nli'>['hypothesis']): string[] {
  const asked = textOrJson(instructions);
  if (kind === 'predicate') {
    const criteria = options.flatMap(({ description }) => (description === null ? [] : [textOrJson(description)]));
    return criteria.length === options.length ? criteria.reverse() : [asked];
  }
  return options.map(({ name, description }) => {
    const text = description === null ? null : textOrJson(description);
    if (style === 'answer') return `The answer to "${asked}" is: ${text === null ? name : `${name}: ${text}`}`;
    if (kind === 'score') return text === null ? name : `${name}: ${text}`;
    return text ?? `This text is about ${name}.`;
  });
}

/** Number of equal parts into which Open-Decision divides the range of a score. */
const BINS = 20;

/** Creates the adapter of an Open-Decision model: rows of a question with an option, and the state. */
export function openDecisionAdapter(contract: ContractOf<'open-decision'>, tokenizer: EncoderTokenizer): Adapter {
  const { maxTokens, choiceTemperature, scoreTemperature, languages } = contract;
  const { cls, sep } = tokenizer.special;
  return {
    capabilities: { ...decidesOnly(maxTokens), ...(languages.length > 0 ? { languages } : {}) },
    *decide(questions, state, { calibrated }, planned) {
      const stateIds = yield* tokenizer.encodeInParts(textOrJson(state, { indent: 2 }));
      for (const question of questions) {
        const rows: EncoderRow[] = [];
        for (const text of pairTexts(question)) {
          const ids = [cls, ...(yield* tokenizer.encodeInParts(text)), sep, ...stateIds, sep];
          if (ids.length > maxTokens) throw tooLong(ids.length, maxTokens);
          rows.push({ ids, shared: stateIds.length });
        }
        planned({
          rows,
          read(outputs) {
            if (question.kind === 'score') {
              const [{ score_logits = EMPTY } = {}] = outputs;
              return {
                logprobs: levelsOf([...score_logits], question.options.length, calibrated ? scoreTemperature : 1),
              };
            }
            const temperature = calibrated ? choiceTemperature : 1;
            return {
              logprobs: normalised(outputs.map((output) => at(output.choice_logits ?? EMPTY, 0) / temperature)),
            };
          },
        });
      }
    },
  };
}

function pairTexts({ kind, instructions, options }: Question): string[] {
  const asked = `Question: ${textOrJson(instructions).trim()}`;
  if (kind === 'score') return [`${asked}\nScore range: 0 to ${options.length - 1}`];
  return options.map(({ name }) => `${asked}\nOption: ${name.trim()}`);
}

/**
 * Divides the probabilities of a score's bins among the levels. The centre of a bin lies between two levels, which
 * share its probability in proportion, so the expected level is the author's score.
 */
function levelsOf(logits: readonly number[], levels: number, temperature: number): number[] {
  const bins = normalised(logits.map((logit) => logit / temperature)).map(Math.exp);
  const shares = new Array<number>(levels).fill(0);
  for (const [i, probability] of bins.entries()) {
    const place = ((i + 0.5) / BINS) * (levels - 1);
    const below = Math.min(Math.floor(place), levels - 1);
    const above = Math.min(below + 1, levels - 1);
    shares[below] = at(shares, below) + probability * (1 - (place - below));
    shares[above] = at(shares, above) + probability * (place - below);
  }
  return logprobsOf(shares);
}
