import { append } from '../../../lib/append.ts';
import { AssayError } from '../../../lib/errors.ts';
import { indexOfHighest, normalised } from '../../../lib/tasks/logprobs.ts';
import { decidesOnly } from '../../contracts/contract.ts';
import { type ContractOf, rowTokens } from '../../contracts/encoder-contracts.ts';
import { textOrJson } from '../../contracts/python-json.ts';
import type { Question } from '../../contracts/question.ts';
import { type Adapter, tooLong } from '../adapter.ts';
import type { EncoderTokenizer } from '../encoder-tokenizer.ts';

/*
 * GLiClass: all labels of a question and the text are one row, `<<LABEL>>one<<LABEL>>two<<SEP>>text`, with a logit for
 * each label. Verdict is a GLiClass model with its own texts, and with a last label for which it abstains.
 */

interface Layout {
  maxTokens: number;
  maxOptions: number;
  texts(question: Question, state: string): { labels: string[]; text: string };
  temperature(labels: number): number;
  abstains: boolean;
}

const LABEL = '<<LABEL>>';
const SEPARATOR = '<<SEP>>';
const ABSTAIN = 'insufficient evidence';

function layoutOf(contract: ContractOf<'gliclass' | 'verdict'>): Layout {
  if (contract.name === 'gliclass') {
    return {
      maxTokens: contract.maxTokens,
      maxOptions: 255,
      abstains: false,
      temperature: () => 1,
      texts: ({ instructions, options }, state) => ({
        labels: options.map(({ name, description }) =>
          description === null ? name : `${name}: ${textOrJson(description)}`,
        ),
        text: `${textOrJson(instructions)}\n${state}`,
      }),
    };
  }
  return {
    maxTokens: rowTokens(contract),
    maxOptions: 24,
    abstains: true,
    temperature: (labels) => contract.temperatureByLabels[labels] ?? contract.temperature,
    texts({ kind, instructions, options }, state) {
      const asked = textOrJson(instructions);
      if (kind === 'predicate') {
        const text = `Context:\n${state}\n\nEvaluate proposition: ${asked}`;
        return { labels: [`true: ${asked}`, `false: not ${asked}`, ABSTAIN], text };
      }
      const labels = options.map(({ name, description }, i) =>
        kind === 'choice' ? `It is ${textOrJson(description ?? name)}` : `${name} (Value: ${i})`,
      );
      return { labels: [...labels, ABSTAIN], text: `Question: ${asked}\n\nContext:\n${state}` };
    },
  };
}

/** Creates the adapter of a GLiClass model. */
export function gliclassAdapter(contract: ContractOf<'gliclass' | 'verdict'>, tokenizer: EncoderTokenizer): Adapter {
  const { maxTokens, maxOptions, texts, temperature, abstains } = layoutOf(contract);
  const { cls, sep } = tokenizer.special;
  const [marker, separator] = [tokenizer.id(LABEL), tokenizer.id(SEPARATOR)];
  return {
    capabilities: { ...decidesOnly(maxTokens, maxOptions), abstains },
    *decide(questions, state, { calibrated }, planned) {
      const stateText = textOrJson(state);
      const { length: shared } = yield* tokenizer.encodeInParts(stateText);
      for (const question of questions) {
        if (question.options.length > maxOptions) {
          const message = `This model chooses among at most ${maxOptions} options. Send fewer.`;
          throw new AssayError('invalid_value', message);
        }
        const { labels, text } = texts(question, stateText);
        const ids = [cls];
        const markers: number[] = [];
        for (const label of labels) {
          markers.push(ids.length);
          append(ids, [marker, ...(yield* tokenizer.encodeInParts(label))]);
        }
        append(ids, [separator, ...(yield* tokenizer.encodeInParts(text)), sep]);
        if (ids.length > maxTokens) throw tooLong(ids.length, maxTokens);
        planned({
          rows: [{ ids, shared, markers }],
          read(outputs) {
            const [{ logits = new Float32Array() } = {}] = outputs;
            const t = calibrated ? temperature(labels.length) : 1;
            const all = [...logits.subarray(0, labels.length)].map((logit) => logit / t);
            const answered = normalised(all.slice(0, question.options.length));
            return abstains && indexOfHighest(all) === labels.length - 1
              ? { logprobs: answered, abstained: true }
              : { logprobs: answered };
          },
        });
      }
    },
  };
}
