import { setImmediate } from 'node:timers/promises';
import type { ChatRequest, Device, TaskBatch } from '../../lib/backend.ts';
import type { ModelId } from '../../lib/model-id.ts';
import type { Engine } from '../engine/engine.ts';
import type { Job } from '../engine/job.ts';
import type { Work } from '../protocol/messages.ts';
import type { ChatDelta } from '../text/chat-output.ts';
import type { TextModel } from '../text/text-model.ts';
import { planChat } from './chat-job.ts';
import { figuresOf, type Measured } from './measured.ts';
import type { PreparedWork, ServedModel, WorkChannel } from './serve.ts';
import { type JobPlan, planTasks } from './task-job.ts';

export interface LoadedModelParts {
  model: ModelId;
  device: Device;
  maxPromptLen: number;
  contextLength: number;
  text: TextModel;
  engine: Engine;
}

/** Turns requests into jobs of the engine and their results into replies. */
export class LoadedModel implements ServedModel {
  readonly info: ServedModel['info'];
  readonly #text: TextModel;
  readonly #engine: Engine;
  #nextJob = 0;
  #stepping = false;

  constructor({ text, engine, ...info }: LoadedModelParts) {
    this.info = info;
    this.#text = text;
    this.#engine = engine;
  }

  load(): { running: number; waiting: number } {
    return { running: this.#engine.running, waiting: this.#engine.queued };
  }

  prepare(work: Work): PreparedWork {
    return work.kind === 'tasks' ? this.#prepareTasks(work.batch) : this.#prepareChat(work.request);
  }

  #prepareTasks(batch: TaskBatch): PreparedWork {
    const { promptTokens, plan, answers } = planTasks(this.#text, batch, this.info);
    return {
      promptTokens,
      run: async (channel, timeoutMs) => {
        const measured = await this.#run(plan, channel, timeoutMs);
        const answered = answers(measured.result);
        channel.reply({ type: 'answers', ...answered });
        const reason = answered.cut.length > 0 ? 'length' : 'stop';
        channel.reply({ type: 'finished', reason, ...this.#figures(measured, promptTokens) });
      },
    };
  }

  #prepareChat(request: ChatRequest): PreparedWork {
    const { promptTokens, plan, end } = planChat(this.#text, request, this.info);
    return {
      promptTokens,
      run: async (channel, timeoutMs) => {
        const onDelta = ({ reasoning, content, logprobs }: ChatDelta) => {
          if (reasoning !== '') channel.reply({ type: 'reasoning', text: reasoning });
          if (content !== '' || logprobs.length > 0) {
            channel.reply({ type: 'content', text: content, ...(logprobs.length > 0 ? { logprobs } : {}) });
          }
        };
        const measured = await this.#run(plan(onDelta), channel, timeoutMs);
        const { delta, reason } = end(measured.result);
        onDelta(delta);
        channel.reply({ type: 'finished', reason, ...this.#figures(measured, promptTokens) });
      },
    };
  }

  #figures(measured: Measured, promptTokens: number) {
    return figuresOf(measured, { promptTokens, device: this.info.device });
  }

  /** Runs a job and measures it. */
  async #run(plan: JobPlan, { reply, signal }: WorkChannel, timeoutMs: number): Promise<Measured> {
    const startedAt = performance.now();
    let firstTokenMs: number | null = null;
    const job: Job = {
      ...plan,
      id: String(this.#nextJob++),
      deadline: startedAt + timeoutMs,
      onToken: (branch, token) => {
        firstTokenMs ??= performance.now() - startedAt;
        return plan.onToken?.(branch, token);
      },
    };
    const submitted = this.#engine.submit(job, signal);
    void this.#stepWhileBusy();
    // A job that the engine refuses is refused at once: it never reports `queued`.
    await Promise.race([submitted, null]);
    reply({ type: 'queued' });
    const result = await submitted;
    return { result, firstTokenMs, totalMs: performance.now() - startedAt };
  }

  /**
   * Steps the engine while it has work, and reads messages between steps. A step that throws ends the process: a new
   * one starts clean.
   */
  async #stepWhileBusy(): Promise<void> {
    if (this.#stepping) return;
    this.#stepping = true;
    while (await this.#engine.step()) await setImmediate();
    this.#stepping = false;
  }
}
