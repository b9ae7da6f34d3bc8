import { at } from '../../../lib/at.ts';
import {
  asListed,
  type Row as ContractRow,
  type ContractText,
  type DecisionContract,
  decidesOnly,
  type Field,
  type OpenContract,
  type Span,
} from '../../contracts/contract.ts';
import type { Adapter, EncoderRow, RowOutput, RunHead } from '../adapter.ts';

/** Name of the graph that reads the states of all tokens. */
export const JOINT_HEAD = 'joint_head';
/** Numbers of the kinds of questions in Clef's head. */
const KINDS = { predicate: 0, choice: 1, score: 2 } as const;

/**
 * Creates the adapter of a decision model on a causal language model that reads its whole prompt at once: every token
 * sees all others, or all questions are answered together.
 */
export function wholeAdapter(
  contract: DecisionContract,
  open: OpenContract,
  text: Pick<ContractText, 'inParts'>,
): Adapter {
  const { limits, maxTokens, confidence, dependence } = contract;
  return {
    ...(dependence ? { dependence } : {}),
    capabilities: decidesOnly(maxTokens, limits.options),
    limits,
    confidence,
    readsMessages: true,
    *decide(questions, state, _, planned) {
      const listed = questions.map((question) => asListed(contract, question));
      // A question in several orders of its options is one of the request's questions.
      const different = [...new Map(listed.toReversed().map((question) => [question.task, question])).values()];
      different.reverse();
      const inParts = text.inParts();
      const asking = yield* inParts(() => open.about(state, different));
      const rows = new Map<ContractRow, EncoderRow>();
      const read = new Map<ContractRow, Promise<readonly number[]>>();
      for (const [i, question] of listed.entries()) {
        const { reading, asked } = yield* inParts(() => {
          const reading = asking.ask(question);
          // A cast: these contracts always read one round of rows.
          return { reading, asked: reading.next([]).value as readonly ContractRow[] };
        });
        planned({
          rows: asked.map((row) => {
            const made = rows.get(row) ?? rowOf(row);
            rows.set(row, made);
            return made;
          }),
          async read(outputs, run) {
            const logits = await Promise.all(
              asked.map((row, k) => {
                const found = read.get(row) ?? logitsOf(row, at(outputs, k), run);
                read.set(row, found);
                return found;
              }),
            );
            const logprobs = reading.next(logits).value as readonly number[];
            return { logprobs: inAnswersOrder(at(questions, i) === question, logprobs) };
          },
        });
        yield;
      }
    },
  };
}

/** Returns log-probabilities in the order of the answer: true before false. */
function inAnswersOrder(sameOrder: boolean, logprobs: readonly number[]): readonly number[] {
  return sameOrder ? logprobs : logprobs.toReversed();
}

function rowOf({ ids, shared, read }: ContractRow): EncoderRow {
  return { ids, shared, markers: 'joint' in read ? read.joint.flatMap(optionTokens) : [ids.length - 1] };
}

/** Returns the positions of the tokens of a field's options. */
function optionTokens({ options }: Field): number[] {
  return options.flatMap(([from, to]) => Array.from({ length: to - from }, (_, i) => from + i));
}

async function logitsOf(row: ContractRow, output: RowOutput, run: RunHead): Promise<readonly number[]> {
  const { ids, read } = row;
  if ('labels' in read) return read.labels.map((label) => at(output.logits ?? new Float32Array(), label));
  if (!('joint' in read)) throw new Error('the contract reads its rows in another way');
  const { states = new Float32Array(), lexical = new Float32Array() } = output;
  const hidden = states.length / ids.length;
  const spans = read.joint.flatMap(({ options }) => options);
  let words = 0;
  const lexicalSpans = spans.map(([from, to]): Span => {
    const first = words;
    words += to - from;
    return [first, words];
  });
  const logits = await run(JOINT_HEAD, {
    states: { data: states, dims: [ids.length, hidden] },
    lexical: { data: lexical.subarray(0, words * hidden), dims: [words, hidden] },
    question_mean: means(
      read.joint.map(({ question }) => question),
      ids.length,
    ),
    option_mean: means(spans, ids.length),
    lexical_mean: means(lexicalSpans, words),
    kinds: { data: read.joint.map(({ kind }) => KINDS[kind]), dims: [read.joint.length] },
    owners: { data: read.joint.flatMap(({ options }, i) => options.map(() => i)), dims: [spans.length] },
  });
  return [...logits];
}

/** Returns the matrix that makes of values their means over spans, one row a span. */
function means(spans: readonly Span[], length: number): { data: Float32Array; dims: number[] } {
  const data = new Float32Array(spans.length * length);
  for (const [i, [from, to]] of spans.entries()) data.fill(1 / (to - from), i * length + from, i * length + to);
  return { data, dims: [spans.length, length] };
}
