import { batchOfTasks } from '../../lib/tasks/batch.ts';
import { ASSAY } from '../../runtime/contracts/assay.ts';
import type { Engine } from '../../runtime/engine/engine.ts';
import type { EngineModel } from '../../runtime/engine/model.ts';
import type { TextModel } from '../../runtime/text/text-model.ts';
import { planWriting } from '../../runtime/worker/task-job.ts';
import { atOnce } from '../../runtime/worker/turns.ts';
import { engineOf } from '../branches/workload.ts';
import type { Case } from '../quality/test-set.ts';

/** Largest number of logit rows in a run with drafts; the server's value for 8-bit weights on CPUs with VNNI. */
const DRAFT_ROWS = 16;

export interface Request {
  context: string;
  tasks: readonly Case[];
}

/** Answers the same requests alone, together, or beside others. Answers are JSON text, in the order of the tasks. */
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

  /**
   * Answers each task in a separate request, on a new engine or, with `cached`, on one that has the text in its cache.
   */
  async eachAlone({ context, tasks }: Request, { cached }: { cached: boolean }): Promise<string[]> {
    const kept = this.#engine();
    if (cached) await this.#answer(kept, { context, tasks: tasks.slice(0, 1) });
    const answers: string[] = [];
    for (const task of tasks) {
      answers.push(...(await this.#answer(cached ? kept : this.#engine(), { context, tasks: [task] })));
    }
    return answers;
  }

  /** Answers all tasks in one request. */
  async together(request: Request, { cached }: { cached: boolean }): Promise<string[]> {
    const engine = this.#engine();
    if (cached) await this.#answer(engine, request);
    return this.#answer(engine, request);
  }

  /** Answers all tasks in one request that lists them from the last to the first. */
  async reversed({ context, tasks }: Request): Promise<string[]> {
    return (await this.together({ context, tasks: tasks.toReversed() }, { cached: false })).reverse();
  }

  /** Answers all tasks in one request while other requests run in the same batches. */
  async beside(request: Request, others: readonly Request[]): Promise<string[]> {
    const engine = this.#engine();
    const all = await Promise.all([...others, request].map((one) => this.#answer(engine, one)));
    return all.at(-1) ?? [];
  }

  #engine(): Engine {
    return engineOf(this.#model, { draftRows: DRAFT_ROWS }, this.#apart);
  }

  async #answer(engine: Engine, { context, tasks }: Request): Promise<string[]> {
    const named = tasks.map(({ expected: _, corrected: __, skill: ___, ...task }, i) => ({ ...task, name: `t${i}` }));
    const request = { model: '', context, temperature: 0, max_output_tokens: 4096, tasks: named };
    const batch = batchOfTasks(request as Parameters<typeof batchOfTasks>[0]);
    const { plan, answers } = atOnce(planWriting({ contract: ASSAY, text: this.#text }, batch, this.#model.manifest));
    const running = engine.submit({ ...plan, id: 'independence', deadline: Number.POSITIVE_INFINITY });
    let done = false;
    const result = running.finally(() => {
      done = true;
    });
    while (!done && (await engine.step()));
    return (await answers(() => result)).answers.map(({ json }) => json);
  }
}
