import { normalised } from '../../../lib/tasks/logprobs.ts';
import { decidesOnly } from '../../contracts/contract.ts';
import type { ContractOf } from '../../contracts/encoder-contracts.ts';
import { textOrJson } from '../../contracts/python-json.ts';
import type { Question } from '../../contracts/question.ts';
import { type Adapter, type EncoderRow, type Planned, tooLong } from '../adapter.ts';
import type { EncoderTokenizer } from '../encoder-tokenizer.ts';

/**
 * Creates the adapter of an open-jev model, which reads all questions of a request in one row: `[CLS] [STATE] state
 * ([Q] question ([OPT] option)+)+ [SEP]`. Questions see each other, as its authors trained it.
 */
export function openJevAdapter(contract: ContractOf<'open-jev'>, tokenizer: EncoderTokenizer): Adapter {
  const { maxTokens, stateTokens, temperature } = contract;
  const { cls, sep } = tokenizer.special;
  const marks = { state: tokenizer.id('[STATE]'), question: tokenizer.id('[Q]'), option: tokenizer.id('[OPT]') };
  return {
    dependence: 'it reads all questions of a request in one row',
    capabilities: decidesOnly(maxTokens),
    decide(questions, state, { calibrated }) {
      const stateIds = tokenizer.encode(textOrJson(state, { sorted: true }));
      if (stateIds.length > stateTokens) throw tooLong(stateIds.length, stateTokens);
      const texts = questions.map(optionTexts);
      const count = texts.reduce((sum, { length }) => sum + length, 0);
      const ids = [cls, marks.state, ...stateIds];
      const tokens = ids.map(() => NEITHER);
      const [asked, answers]: [number[], number[]] = [[], []];
      const add = (mark: number, text: readonly number[], part: number): void => {
        ids.push(mark, ...text);
        tokens.push(NEITHER, ...text.map(() => part));
      };
      for (const [i, question] of questions.entries()) {
        add(marks.question, tokenizer.encode(textOrJson(question.instructions)), count + i);
        for (const option of texts[i] ?? []) {
          add(marks.option, tokenizer.encode(option), answers.length);
          asked.push(count + i);
          answers.push(answers.length);
        }
      }
      ids.push(sep);
      tokens.push(NEITHER);
      if (ids.length > maxTokens) throw tooLong(ids.length, maxTokens);
      const row: EncoderRow = { ids, shared: stateIds.length, parts: { tokens, questions: asked, options: answers } };
      let first = 0;
      return questions.map(({ kind }, i): Planned => {
        const from = first;
        first += texts[i]?.length ?? 0;
        const end = first;
        return {
          rows: [row],
          read(outputs) {
            const [{ logits = new Float32Array() } = {}] = outputs;
            const read = [...logits.subarray(from, end)].map((logit) => logit / (calibrated ? temperature : 1));
            const logprobs = normalised(read);
            // In a row, "no" is before "yes".
            return { logprobs: kind === 'predicate' ? logprobs.reverse() : logprobs };
          },
        };
      });
    },
  };
}

/** Part of tokens that belong to no question and no option. */
const NEITHER = -1;

function optionTexts({ kind, options }: Question): string[] {
  return kind === 'predicate' ? ['no', 'yes'] : options.map(({ name }) => name);
}
