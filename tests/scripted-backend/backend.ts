import type {
  BatchAnswer,
  Call,
  ChatEvent,
  ChatRequest,
  InferenceBackend,
  Metrics,
  Task,
  TaskAnswer,
  TaskBatch,
} from '../../lib/backend.ts';
import { leavesOf } from '../../lib/json/leaves.ts';
import { sizeOfRequest } from '../../lib/limits/request-size.ts';
import { parseModelId } from '../../lib/model-id.ts';
import { normalised } from '../../lib/tasks/logprobs.ts';
import type { Recorded, Script } from './script.ts';
import { pause, throwFault } from './steps.ts';

export const DEFAULT_MODEL = parseModelId('assay/starter');

export const NO_METRICS: Metrics = {
  queue_ms: null,
  prompt_ms: null,
  time_to_first_token_ms: null,
  generation_ms: null,
  total_ms: null,
  prompt_tokens: null,
  cached_tokens: null,
  completion_tokens: null,
  prompt_tokens_per_second: null,
  tokens_per_second: null,
  device: null,
};

/** Creates an `InferenceBackend` that follows a test's script, and records its calls. Not a model: only for tests. */
export function scriptedBackend(script: Script, recorded: Recorded[] = []): InferenceBackend {
  const begin = (call: Recorded['call'], details: object, { signal, priority, session }: Call) => {
    recorded.push({ call, ...details, ...(priority ? { priority } : {}), ...(session ? { session } : {}) });
    signal.addEventListener('abort', () => recorded.push({ call: 'aborted', of: call }));
    signal.throwIfAborted();
  };
  const admit = async (call: Call, request: TaskBatch | ChatRequest) => {
    recorded.push({ call: 'admit' });
    await call.admit(sizeOfRequest(request).tokens);
  };
  return {
    async listModels(call) {
      recorded.push({ call: 'listModels' });
      call.signal.throwIfAborted();
      return listed(script);
    },
    async runTasks(batch, call) {
      begin('runTasks', { batch, requestId: call.requestId }, call);
      throwFault(script.tasks?.fail);
      await admit(call, batch);
      await pause(script.tasks, call.signal);
      return answer(batch, script.tasks ?? {});
    },
    async *chat(request, call) {
      begin('chat', { request, requestId: call.requestId }, call);
      for (const step of script.chat ?? PLAIN_CHAT) {
        if ('fail' in step) throwFault(step.fail);
        else if ('event' in step) {
          if (step.event.type === 'start') await admit(call, request);
          yield step.event as ChatEvent;
        } else await pause(step, call.signal);
      }
    },
  };
}

/** Returns the models of a script; throws if it says that listing fails. */
export function listed(script: Script) {
  const models = script.models ?? [{ id: DEFAULT_MODEL, status: 'active' as const }];
  if ('code' in models || 'crash' in models) return throwFault(models) as never;
  return models.map(({ id, ...facts }) => ({ id: parseModelId(id), ...facts }));
}

const PLAIN_CHAT: NonNullable<Script['chat']> = [
  { event: { type: 'start', model: DEFAULT_MODEL } },
  { event: { type: 'content', text: 'Hello.' } },
  { event: { type: 'finish', reason: 'stop', usage: { promptTokens: 5, completionTokens: 2 }, metrics: NO_METRICS } },
];

function answer(batch: TaskBatch, said: NonNullable<Script['tasks']>): BatchAnswer {
  return {
    model: DEFAULT_MODEL,
    answers: batch.tasks.map((task, i) => scriptedAnswer(task, i, batch, said)),
    finishReason: said.finishReason ?? 'stop',
    ...(said.cut ? { cut: said.cut } : {}),
    usage: said.usage ?? { promptTokens: 10, completionTokens: batch.tasks.length },
  };
}

/** Every value of an extraction has probability 0.9, unless the script says otherwise. */
function scriptedAnswer(
  task: Task,
  index: number,
  { probabilities }: TaskBatch,
  said: NonNullable<Script['tasks']>,
): TaskAnswer {
  const json = said.answers?.[index] ?? madeUpAnswer(task);
  if (!probabilities) return { name: task.name, json };
  if (task.type === 'decide' && task.options) {
    const optionLogprobs = said.probabilities?.[index]?.map(finiteLog) ?? madeUpLogprobs(task.options.length);
    const abstained = said.abstained ? { abstained: true } : {};
    const labelMass = said.labelMass?.[index];
    return { name: task.name, json, optionLogprobs, ...abstained, ...(labelMass === undefined ? {} : { labelMass }) };
  }
  const reached = leavesOf(json).slice(0, said.reached);
  const fields = reached.map(({ path }) => ({ path, probability: 0.9 }));
  const present =
    task.type === 'extract' && task.present ? { absent: said.absent?.[index] ?? 0.25, certainty: 0.5 } : {};
  return { name: task.name, json, fields, ...present };
}

/** The logarithm of a probability, which JSON can carry: that of 0 is a number whose exponential is 0. */
const finiteLog = (probability: number) => Math.max(Math.log(probability), -1000);

/** Each option is half as probable as the one before it. */
function madeUpLogprobs(options: number): number[] {
  return normalised(Array.from({ length: options }, (_, i) => -i * Math.LN2));
}

/** Returns the first option, or `yes`; keys all null; an empty object for any other shape. */
function madeUpAnswer(task: Task): string {
  if (task.type === 'decide') return JSON.stringify({ value: task.options?.[0] ?? 'yes' });
  if (task.shape.kind !== 'keys') return '{}';
  return `{${task.shape.keys.map((key) => `${JSON.stringify(key)}:null`).join(',')}}`;
}
