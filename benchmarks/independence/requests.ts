import { at } from '../../lib/at.ts';
import { atOnce } from '../../lib/at-once.ts';
import { batchOfTasks } from '../../lib/tasks/batch.ts';
import { ASSAY } from '../../runtime/contracts/assay.ts';
import { cellBytes } from '../../runtime/engine/cache/kv-shape.ts';
import type { Engine } from '../../runtime/engine/engine.ts';
import { type EngineModel, kvShape } from '../../runtime/engine/model.ts';
import type { TextModel } from '../../runtime/text/text-model.ts';
import { planChat } from '../../runtime/worker/chat-job.ts';
import { planWriting } from '../../runtime/worker/task-job.ts';
import { engineOf } from '../branches/workload.ts';
import type { Case } from '../quality/test-set.ts';

/** Largest number of logit rows in a run with drafts; the server's value for 8-bit weights on CPUs with VNNI. */
const DRAFT_ROWS = 16;
const ENDLESS = { deadline: Number.POSITIVE_INFINITY };

export interface Request {
  context: string;
  tasks: readonly Case[];
}

/** Answers the same requests alone and in company. Answers are JSON text, in the order of the tasks. */
export class Requests {
  readonly #text: TextModel;
  readonly #model: EngineModel;
  readonly #apart: boolean;

  /** @param apart false to compute the tasks of a request side by side */
  constructor(text: TextModel, model: EngineModel, apart: boolean) {
    this.#apart = apart;
    this.#text = text;
    this.#model = model;
  }

  /** Answers each task in a request of its own, on an engine with an empty cache. */
  async eachAlone({ context, tasks }: Request): Promise<string[]> {
    const answers: string[] = [];
    for (const task of tasks)
      answers.push(...(await this.#answer(this.#engine(), { context, tasks: [task] }, { cached: false })));
    return answers;
  }

  /**
   * Answers all tasks in one request: on an empty cache, again from the cache, and once more after another request took
   * its place. Before that, answers each task in a request of its own from the cache.
   */
  async fromCache(
    request: Request,
    other: Request,
  ): Promise<Record<'together' | 'again' | 'eachAgain' | 'afterEviction', string[]>> {
    const lengths = [request, other].map((one) => this.#plan(one).plan.prefix.length);
    // Room for the longer text, and so for one of both.
    const engine = this.#engine(Math.max(...lengths) * cellBytes(kvShape(this.#model.manifest)));
    const together = await this.#answer(engine, request, { cached: false });
    const again = await this.#answer(engine, request, { cached: true });
    const eachAgain: string[] = [];
    for (const task of request.tasks)
      eachAgain.push(...(await this.#answer(engine, { ...request, tasks: [task] }, { cached: true })));
    await this.#answer(engine, other, { cached: false });
    return { together, again, eachAgain, afterEviction: await this.#answer(engine, request, { cached: false }) };
  }

  /** Answers all tasks in one request that lists them from the last to the first. */
  async reversed({ context, tasks }: Request): Promise<string[]> {
    return (await this.#answer(this.#engine(), { context, tasks: tasks.toReversed() }, { cached: false })).reverse();
  }

  /** Answers all tasks in one request, spread among so many others on the same text. */
  async among(others: readonly Case[], { context, tasks }: Request): Promise<string[]> {
    const every = Math.floor((others.length + tasks.length) / tasks.length);
    const all = tasks.flatMap((task, i) => [...others.slice(i * (every - 1), (i + 1) * (every - 1)), task]);
    const answers = await this.#answer(this.#engine(), { context, tasks: all }, { cached: false });
    return tasks.map((_, i) => at(answers, (i + 1) * every - 1));
  }

  /** Answers requests that run in the same batches. */
  beside(requests: readonly Request[]): Promise<string[][]> {
    const engine = this.#engine();
    return Promise.all(requests.map((one) => this.#answer(engine, one)));
  }

  /** Answers all tasks in one request while chats about other texts are being written. */
  async besideChats(request: Request, contexts: readonly string[]): Promise<string[]> {
    const engine = this.#engine();
    const end = new AbortController();
    let writing = 0;
    const began = () => void writing++;
    const chats = contexts.map((context) => this.#chat(engine, context, { signal: end.signal, began }));
    while (writing < contexts.length) await engine.step();
    const answers = await this.#answer(engine, request, { cached: false });
    if (engine.running < contexts.length) throw new Error('a chat ended before the request');
    end.abort();
    while (await engine.step());
    await Promise.allSettled(chats);
    return answers;
  }

  /** Writes about a text until the signal aborts. */
  #chat(engine: Engine, context: string, { signal, began }: { signal: AbortSignal; began(): void }): Promise<unknown> {
    const { plan } = atOnce(
      planChat(
        this.#text,
        {
          messages: [{ role: 'user', parts: [{ type: 'text', text: `Rewrite this text.\n\n${context}` }] }],
          temperature: 1,
          seed: 1,
          stop: [],
          presencePenalty: 0,
          frequencyPenalty: 0,
          format: { type: 'text' },
        },
        this.#model.manifest,
      ),
    );
    const { branches, ...job } = plan(() => {});
    let tokens = 0;
    const onToken = () => {
      if (tokens++ === 0) began();
      return undefined;
    };
    const endless = branches.map((branch) => ({ ...branch, endTokens: new Set<number>() }));
    return engine.submit({ ...job, branches: endless, onToken, id: 'chat', ...ENDLESS }, signal);
  }

  /** Creates an engine with an empty cache, of so many bytes or large enough for all. */
  #engine(kvBytes?: number): Engine {
    return engineOf(this.#model, { draftRows: DRAFT_ROWS }, { apart: this.#apart, ...(kvBytes ? { kvBytes } : {}) });
  }

  #plan({ context, tasks }: Request) {
    const named = tasks.map(({ expected: _, corrected: __, skill: ___, ...task }, i) => ({ ...task, name: `t${i}` }));
    // So many tokens that no task lacks some because of the others.
    const request = { model: '', context, temperature: 0, max_output_tokens: 65_536, tasks: named };
    const batch = batchOfTasks(request as Parameters<typeof batchOfTasks>[0]);
    return atOnce(planWriting({ contract: ASSAY, text: this.#text }, batch, this.#model.manifest));
  }

  /**
   * Answers a request. Throws if `cached` is given and wrong: the whole text is in the cache, or is not. The words with
   * which all prompts begin may always be there.
   */
  async #answer(engine: Engine, request: Request, { cached }: { cached?: boolean } = {}): Promise<string[]> {
    const { plan, answers } = this.#plan(request);
    const running = engine.submit({ ...plan, id: 'independence', ...ENDLESS });
    let done = false;
    const result = running.finally(() => {
      done = true;
    });
    while (!done && (await engine.step()));
    const { cachedTokens } = await result;
    if (cached !== undefined && cached !== (cachedTokens === plan.prefix.length))
      throw new Error(`${cachedTokens} of ${plan.prefix.length} tokens of the text were cached`);
    return (await answers(() => result)).answers.map(({ json }) => json);
  }
}
