import { at } from '../../lib/at.ts';
import { type Engine, placesOf } from '../../runtime/engine/engine.ts';
import type { JobResult } from '../../runtime/engine/job-spec.ts';
import type { EngineModel } from '../../runtime/engine/model.ts';
import type { JobPlan } from '../../runtime/worker/task-job.ts';

const ENDLESS = { deadline: Number.POSITIVE_INFINITY };
/** Number of tasks of a request among others: the most that a request may have. */
export const TASKS_AMONG = 256;
export const CHATS = 7;
/** Number of tasks of a request that are asked about what a chat wrote. */
const TASKS_AFTER_CHAT = 4;

export interface Request<Text, Task> {
  text: Text;
  tasks: readonly Task[];
}

/** Turns requests and chats into jobs of an engine. */
export interface Asker<Text, Task> {
  /** Creates an engine with an empty cache, of so many bytes or large enough for all. */
  engine(kvBytes?: number): Engine;
  /** Plans the job of a request. `answers` reads its answers, in the order of the tasks. */
  plan(request: Request<Text, Task>): { job: JobPlan; answers(result: JobResult): Promise<string[]> };
  /** Plans a chat about a text: a job of one branch, which writes a few tokens. */
  chat(text: Text): JobPlan;
}

/** Holds what is asked in company of a request. */
interface Company<Text, Task> {
  /** Requests about other texts that run in the same batches. */
  beside: readonly Request<Text, Task>[];
  /** Other texts that chats are about, as many as there are chats. */
  texts: readonly Text[];
  /** Number of tasks of the request among others. */
  most: number;
  /** Returns so many other tasks. */
  others(count: number): readonly Task[];
}

/** Holds the answers of tasks in one way, and those of each of them alone. */
interface Compared<Task> {
  way: string;
  tasks: readonly Task[];
  alone: readonly string[];
  answers: readonly string[];
}

/** Holds answers on an empty cache, the bytes that they left there, and answers from it. */
interface Cached {
  together: string[];
  kvBytes: number;
  again: string[];
  /** Of each task in a request of its own. */
  eachAgain: string[];
}

/** Answers the same requests alone and in company. Answers are text, in the order of the tasks. */
export class Ways<Text, Task> {
  readonly #asker: Asker<Text, Task>;
  readonly #places: number;

  constructor({ forward }: Pick<EngineModel, 'forward'>, asker: Asker<Text, Task>) {
    this.#asker = asker;
    this.#places = placesOf(forward);
  }

  /** Answers a request in all ways. The answers alone are those of each task on an engine with an empty cache. */
  async *compare(
    request: Request<Text, Task>,
    { beside, texts, most, others }: Company<Text, Task>,
  ): AsyncGenerator<Compared<Task>> {
    const { tasks } = request;
    const alone = await this.#eachAlone(request);
    const cached = await this.#fromCache(request);
    const more = others(most - tasks.length);
    const another = { text: at(texts, 0), tasks: others(1) };
    // Chats of the request's own key have its places.
    const own = texts.slice(0, this.#places - 1);
    const fewer = own.length < texts.length ? ', as many as run' : '';
    for (const [way, answers] of [
      ['together', cached.together],
      ['in another order', await this.#reversed(request)],
      [`with ${most - 1} others on the text`, await this.#among(more, request)],
      ['alone, on a cached text', cached.eachAgain],
      ['together, on a cached text', cached.again],
      ['after an eviction', await this.#afterEviction(request, another, cached.kvBytes)],
      ['after parts of the text', await this.#afterParts(request)],
      ['beside other requests', await this.#beside(request, beside)],
      [`beside ${own.length} chats${fewer}`, await this.#besideChats(request, own, () => '')],
      [`beside ${texts.length} chats of other keys`, await this.#besideChats(request, texts, String)],
    ] as const)
      yield { way, tasks, alone, answers };
    yield* this.#afterChat({ ...request, tasks: tasks.slice(0, TASKS_AFTER_CHAT) });
  }

  /** Answers each task in a request of its own, on an engine with an empty cache. */
  async #eachAlone(request: Request<Text, Task>, prefix?: readonly number[]): Promise<string[]> {
    const answers: string[] = [];
    for (const task of request.tasks)
      answers.push(
        ...(await this.#answer(this.#asker.engine(), { ...request, tasks: [task] }, { prefix, cached: 'none' })),
      );
    return answers;
  }

  /**
   * Answers all tasks in one request: on an empty cache, and again from the cache. After that, answers each task in a
   * request of its own from the cache.
   */
  async #fromCache(request: Request<Text, Task>): Promise<Cached> {
    const engine = this.#asker.engine();
    const together = await this.#answer(engine, request, { cached: 'none' });
    const { kvBytes } = engine;
    const again = await this.#answer(engine, request, { cached: 'all' });
    const eachAgain: string[] = [];
    for (const task of request.tasks)
      eachAgain.push(...(await this.#answer(engine, { ...request, tasks: [task] }, { cached: 'all' })));
    engine.checkIntegrity();
    return { together, again, eachAgain, kvBytes };
  }

  /**
   * Answers all tasks in one request, once more after another request took its place in the cache.
   *
   * @param kvBytes what the request leaves in the cache
   */
  async #afterEviction(request: Request<Text, Task>, other: Request<Text, Task>, kvBytes: number): Promise<string[]> {
    const engine = this.#asker.engine(kvBytes);
    await this.#answer(engine, request, { cached: 'none' });
    if (engine.kvBytes < kvBytes) throw new Error('the text was evicted before the other request');
    await this.#answer(engine, other, { cached: 'none' });
    return this.#answer(engine, request, { cached: 'none' });
  }

  /** Answers all tasks in one request that lists them from the last to the first. */
  async #reversed({ text, tasks }: Request<Text, Task>): Promise<string[]> {
    const reversed = { text, tasks: tasks.toReversed() };
    return (await this.#answer(this.#asker.engine(), reversed, { cached: 'none' })).reverse();
  }

  /** Answers all tasks in one request, spread among so many others on the same text. */
  async #among(others: readonly Task[], { text, tasks }: Request<Text, Task>): Promise<string[]> {
    const every = Math.floor((others.length + tasks.length) / tasks.length);
    const all = tasks.flatMap((task, i) => [...others.slice(i * (every - 1), (i + 1) * (every - 1)), task]);
    all.push(...others.slice(tasks.length * (every - 1)));
    const answers = await this.#answer(this.#asker.engine(), { text, tasks: all }, { cached: 'none' });
    return tasks.map((_, i) => at(answers, (i + 1) * every - 1));
  }

  /** Answers all tasks in one request after some about the beginning of the text, which ends in no block of cells. */
  async #afterParts(request: Request<Text, Task>): Promise<string[]> {
    const { prefix } = this.#asker.plan(request).job;
    const engine = this.#asker.engine();
    for (const end of [Math.floor(prefix.length / 2) | 1, prefix.length - 3])
      await this.#answer(engine, { ...request, tasks: request.tasks.slice(0, 1) }, { prefix: prefix.slice(0, end) });
    return this.#answer(engine, request, { cached: 'some' });
  }

  /** Answers all tasks in one request while others run in the same batches. */
  async #beside(request: Request<Text, Task>, others: readonly Request<Text, Task>[]): Promise<string[]> {
    const engine = this.#asker.engine();
    const [answers] = await Promise.all([request, ...others].map((one) => this.#answer(engine, one)));
    engine.checkIntegrity();
    return answers ?? [];
  }

  /**
   * Answers all tasks in one request while chats about other texts are being written.
   *
   * @param callerOf returns who sent a chat; the request has no name
   */
  async #besideChats(
    request: Request<Text, Task>,
    texts: readonly Text[],
    callerOf: (chat: number) => string,
  ): Promise<string[]> {
    const engine = this.#asker.engine();
    const end = new AbortController();
    let begun = 0;
    const chats = texts.map((text, index) => {
      const { branches, ...chat } = this.#asker.chat(text);
      const endless = { maxTokens: Number.MAX_SAFE_INTEGER, unmetered: true, endTokens: new Set<number>() };
      let tokens = 0;
      const onToken = () => {
        if (tokens++ === 0) begun++;
        return undefined;
      };
      const writing = branches.map((branch) => ({ ...branch, ...endless }));
      const job = { ...chat, branches: writing, onToken, caller: callerOf(index), id: 'chat', ...ENDLESS };
      return engine.submit(job, end.signal);
    });
    while (begun < texts.length) {
      await engine.step();
      if (begun === engine.running && engine.queued > 0) throw new Error(`only ${begun} chats run at once`);
    }
    const answers = await this.#answer(engine, request, { cached: 'none' });
    if (engine.running < texts.length) throw new Error('a chat ended before the request');
    end.abort();
    while (await engine.step());
    await Promise.allSettled(chats);
    engine.checkIntegrity();
    return answers;
  }

  /** Answers all tasks in one request about the words of a chat that is cached; and again once the chat went on. */
  async *#afterChat(request: Request<Text, Task>): AsyncGenerator<Compared<Task>> {
    const engine = this.#asker.engine();
    const { prefix, branches, ...chat } = this.#asker.chat(request.text);
    const branch = { ...at(branches, 0), endTokens: new Set<number>() };
    let said = prefix;
    for (const way of ['about the words of a chat', 'about those of a chat that went on']) {
      const job = { ...chat, id: 'chat', prefix: said, branches: [branch], ...ENDLESS };
      const written = await finished(engine, engine.submit(job));
      said = [...said, ...branch.suffix, ...at(written.branches, 0).tokens];
      const answers = await this.#answer(engine, request, { prefix: said });
      yield { way, tasks: request.tasks, alone: await this.#eachAlone(request, said), answers };
    }
    engine.checkIntegrity();
  }

  /**
   * Answers a request, after another prefix if one is given. Throws if `cached` is given and wrong: all, some or none
   * of the text is in the cache. The words with which all prompts begin may always be there.
   */
  async #answer(
    engine: Engine,
    request: Request<Text, Task>,
    { cached, prefix }: { cached?: 'all' | 'some' | 'none'; prefix?: readonly number[] | undefined } = {},
  ): Promise<string[]> {
    const { job, answers } = this.#asker.plan(request);
    const asked = prefix ? { ...job, prefix } : job;
    const result = await finished(engine, engine.submit({ ...asked, id: 'independence', ...ENDLESS }));
    const { length } = asked.prefix;
    const { cachedTokens } = result;
    const isAll = cachedTokens === length;
    if (cached && (isAll !== (cached === 'all') || (cached === 'some' && cachedTokens === 0)))
      throw new Error(`${cachedTokens} of ${length} tokens of the text were cached`);
    return answers(result);
  }
}

/** Steps until a job is done. */
export async function finished(engine: Engine, running: Promise<JobResult>): Promise<JobResult> {
  let done = false;
  const result = running.finally(() => {
    done = true;
  });
  while (!done && (await engine.step()));
  return result;
}
