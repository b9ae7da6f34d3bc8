import { EmptyChatWrapper, getLlama, type LlamaContextSequence, type LlamaModel, type Token } from 'node-llama-cpp';
import { at } from '../../lib/at.ts';
import { randomTokens, W } from '../branches/tokens.ts';
import { ggufRandomModel } from '../models/cache.ts';
import { measure } from '../systems/measure.ts';
import type { ChoicesWork, OpenSystem, Settings } from '../systems/system.ts';

/** Number of questions that `decide` scores in parallel. A higher number is not faster on two cores. */
const PARALLEL_QUESTIONS = 16;
/** Batch size in tokens: reads W's context in one batch, which is faster than with llama.cpp's default of 512. */
const BATCH = 1536;

/**
 * Opens node-llama-cpp, with one of two modes for several tasks on one context. `sequence` reads the context into one
 * sequence, which is cut back to the context after every task; this is the fastest way with the public API. `copies`
 * copies the context to a sequence for each task and runs the tasks in parallel; the method that copies is not public.
 */
export const open: OpenSystem = async (settings) => {
  const llama = await getLlama({ gpu: false, build: 'never', progressLogs: false, logLevel: 'error' as never });
  const modelPath = await ggufRandomModel(settings.shape, settings.weights === 'int8' ? 'q8_0' : 'q4_0');
  const model = await llama.loadModel({ modelPath });
  const contexts = new Contexts(model, settings);
  return {
    async branches({ tasks, seed }) {
      const side = settings.mode === 'copies' ? tasks : 1;
      const sequences = await contexts.sequences(side, W.context + W.task + W.answer + 16);
      await Promise.all(sequences.map((sequence) => sequence.clearHistory()));
      const [first, ...others] = sequences as [LlamaContextSequence, ...LlamaContextSequence[]];
      const answerAll = async (from: number) => {
        if (side > 1) return Promise.all(sequences.map((sequence, i) => answerTask(sequence, from * 1000 + i)));
        for (let task = 0; task < tasks; task++) await answerTask(first, from * 1000 + task);
      };
      const cold = await measure(async () => {
        await first.evaluateWithoutGeneratingNewTokens(randomTokens(W.context, seed) as Token[]);
        for (const other of others) await copyState(other, first, W.context);
        await answerAll(seed);
      });
      const cached = await measure(() => answerAll(seed + 1));
      return { cold: { ms: cold.ms, cpuMs: cold.cpuMs }, cached: { ms: cached.ms, cpuMs: cached.cpuMs } };
    },
    choices: (work) => contexts.decide(work),
    async prefill({ tokens, seed }) {
      const [sequence] = (await contexts.sequences(1, tokens + 16)) as [LlamaContextSequence];
      await sequence.clearHistory();
      const { ms, cpuMs } = await measure(() => generate(sequence, randomTokens(tokens, seed), 1));
      return { ms, cpuMs };
    },
    async decode({ context, tokens, seed }) {
      const [sequence] = (await contexts.sequences(1, context + tokens + 16)) as [LlamaContextSequence];
      await sequence.clearHistory();
      const prompt = randomTokens(context, seed);
      await sequence.evaluateWithoutGeneratingNewTokens(prompt.slice(0, -1) as Token[]);
      const { ms, cpuMs } = await measure(() => generate(sequence, prompt.slice(-1), tokens));
      return { ms, cpuMs };
    },
    async crowd({ requests }) {
      const longest = Math.max(...requests.map(({ prompt, answer }) => prompt + answer + 16));
      // A llama.cpp context runs its sequences in one batch.
      const sequences = await contexts.sequences(requests.length, longest);
      await Promise.all(sequences.map((sequence) => sequence.clearHistory()));
      const { ms, cpuMs } = await measure(() =>
        Promise.all(
          sequences.map((sequence, i) => {
            const { prompt, answer, seed } = at(requests, i);
            return generate(sequence, randomTokens(prompt, seed), answer);
          }),
        ),
      );
      return { ms, cpuMs };
    },
  };
};

/** Cuts the sequence back to the context, then generates the answer to a task. */
async function answerTask(sequence: LlamaContextSequence, seed: number): Promise<void> {
  const end = sequence.nextTokenIndex;
  if (end > W.context) await sequence.eraseContextTokenRanges([{ start: W.context, end }]);
  await generate(sequence, randomTokens(W.task, seed), W.answer);
}

async function generate(sequence: LlamaContextSequence, tokens: number[], count: number): Promise<void> {
  let said = 0;
  for await (const _ of sequence.evaluate(tokens as Token[], { temperature: 0, yieldEogToken: true })) {
    if (++said === count) return;
  }
  throw new Error('the answer ended early');
}

async function copyState(to: LlamaContextSequence, from: LlamaContextSequence, length: number): Promise<void> {
  const inner = to as unknown as {
    _copyStateFromOtherSequence(from: LlamaContextSequence, to: number): Promise<boolean>;
  };
  if (!(await inner._copyStateFromOtherSequence(from, length))) throw new Error('the state was not copied');
}

/** Keeps the llama.cpp context that was created last for reuse, because creating one must not be measured. */
class Contexts {
  readonly #model: LlamaModel;
  readonly #settings: Settings;
  #open: { key: string; value: unknown; dispose(): Promise<void> } | null = null;

  constructor(model: LlamaModel, settings: Settings) {
    this.#model = model;
    this.#settings = settings;
  }

  sequences(count: number, contextSize: number): Promise<LlamaContextSequence[]> {
    return this.#once(`${count} of ${contextSize}`, async () => {
      const context = await this.#model.createContext({
        contextSize,
        sequences: count,
        threads: this.#settings.threads,
        batchSize: BATCH,
        flashAttention: true,
        ignoreMemorySafetyChecks: true,
      });
      const value = Array.from({ length: count }, () => context.getSequence());
      return { value, dispose: () => context.dispose() };
    });
  }

  /**
   * Answers decide tasks and returns the cost with the number of prompt tokens. The tokens of this model are bytes, so
   * a document has as many tokens as characters.
   */
  async decide({
    questions,
    seed,
    context,
  }: ChoicesWork): Promise<{ ms: number; cpuMs: number; promptTokens: number }> {
    const decider = await this.#once(`decide ${context}`, async () => {
      const value = await this.#model.createDecisionContext({
        contextSize: context + 512,
        parallelQuestions: PARALLEL_QUESTIONS,
        threads: this.#settings.threads,
        batchSize: BATCH,
        chatWrapper: new EmptyChatWrapper(),
        ignoreMemorySafetyChecks: true,
      });
      return { value, dispose: () => value.dispose() };
    });
    const asked = Object.fromEntries(
      Array.from({ length: questions }, (_, i) => [
        `q${i}`,
        { type: 'choice', instruction: `is it ${seed} ${i}?`, criteria: { a: 'x', b: 'y', c: 'z' } } as const,
      ]),
    );
    const document = randomTokens(context, seed)
      .map((token) => String.fromCharCode(97 + (token % 26)))
      .join('');
    const { ms, cpuMs, result } = await measure(() => decider.decideWithMeta(document, asked));
    return { ms, cpuMs, promptTokens: result.tokenUsage.input };
  }

  async #once<T>(key: string, make: () => Promise<{ value: T; dispose(): Promise<void> }>): Promise<T> {
    if (this.#open?.key !== key) {
      await this.#open?.dispose();
      this.#open = null;
      this.#open = { key, ...(await make()) };
    }
    return this.#open.value as T;
  }
}
