import { append } from '../../../lib/append.ts';
import { normalised } from '../../../lib/tasks/logprobs.ts';
import { decidesOnly } from '../../contracts/contract.ts';
import type { ContractOf } from '../../contracts/encoder-contracts.ts';
import { textOrJson } from '../../contracts/python-json.ts';
import type { Question } from '../../contracts/question.ts';
import { type Adapter, type EncoderRow, tooLong } from '../adapter.ts';
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
    *decide(questions, state, { calibrated }, planned) {
      const stateIds = yield* tokenizer.encodeInParts(textOrJson(state, { sorted: true }));
      if (stateIds.length > stateTokens) throw tooLong(stateIds.length, stateTokens);
      const texts = questions.map(optionTexts);
      const count = texts.reduce((sum, { length }) => sum + length, 0);
      const ids = [cls, marks.state, ...stateIds];
      const tokens = ids.map(() => NEITHER);
      const [asked, answers]: [number[], number[]] = [[], []];
      function* add(mark: number, text: string, part: number): Generator<void, void> {
        const own = yield* tokenizer.encodeInParts(text);
        append(ids, [mark, ...own]);
        append(tokens, [NEITHER, ...own.map(() => part)]);
      }
      for (const [i, question] of questions.entries()) {
        yield* add(marks.question, textOrJson(question.instructions), count + i);
        for (const option of texts[i] ?? []) {
          yield* add(marks.option, option, answers.length);
          asked.push(count + i);
          answers.push(answers.length);
        }
      }
      ids.push(sep);
      tokens.push(NEITHER);
      if (ids.length > maxTokens) throw tooLong(ids.length, maxTokens);
      const row: EncoderRow = { ids, shared: stateIds.length, parts: { tokens, questions: asked, options: answers } };
      let first = 0;
      for (const [i, { kind }] of questions.entries()) {
        const from = first;
        first += texts[i]?.length ?? 0;
        const end = first;
        planned({
          rows: [row],
          read(outputs) {
            const [{ logits = new Float32Array() } = {}] = outputs;
            const read = [...logits.subarray(from, end)].map((logit) => logit / (calibrated ? temperature : 1));
            const logprobs = normalised(read);
            // In a row, "no" is before "yes".
            return { logprobs: kind === 'predicate' ? logprobs.reverse() : logprobs };
          },
        });
      }
    },
  };
}

/** Part of tokens that belong to no question and no option. */
const NEITHER = -1;

function optionTexts({ kind, options }: Question): string[] {
  return kind === 'predicate' ? ['no', 'yes'] : options.map(({ name }) => name);
}
