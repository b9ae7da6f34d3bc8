import {
  AssayError,
  type ChatEvent,
  type InferenceBackend,
  parseModelId,
  type Task,
  type TaskAnswer,
  type TaskBatch,
} from 'assay';

const MODEL = parseModelId('example/keywords');

/**
 * A backend that counts words instead of running a model: it answers a decide task with the option that occurs most
 * often in the input, and an extract task with keys from lines such as `key: value` (a missing key gets null). It
 * refuses chats. Replace it with any other backend.
 */
export const keywordBackend: InferenceBackend = {
  async listModels() {
    return [{ id: MODEL, status: 'active' }];
  },

  async runTasks(batch, call) {
    if (batch.model !== undefined && batch.model !== MODEL) {
      throw new AssayError('model_not_found', `There is one model here: ${MODEL}.`, { param: 'model' });
    }
    call.signal.throwIfAborted();
    await call.admit();
    const text = textOf(batch);
    const answers = batch.tasks.map((task) => answerTo(task, text, batch.probabilities !== undefined));
    const promptTokens = text.split(/\s+/).length;
    return { model: MODEL, answers, finishReason: 'stop', usage: { promptTokens, completionTokens: 0 } };
  },

  // biome-ignore lint/correctness/useYield: it refuses before there is anything to say
  async *chat(): AsyncGenerator<ChatEvent> {
    throw new AssayError('model_not_loaded', 'This backend answers tasks only. Send them to POST /v1/tasks.');
  },
};

function textOf({ input }: TaskBatch): string {
  if ('context' in input) return input.context;
  return input.messages.flatMap(({ parts }) => parts.map((part) => (part.type === 'text' ? part.text : ''))).join('\n');
}

/** Answers one task. `measured` is true if the caller also asked for probabilities. */
function answerTo(task: Task, text: string, measured: boolean): TaskAnswer {
  const { name } = task;
  if (task.type === 'decide') {
    const { options = [''] } = task;
    const counts = options.map((option) => text.toLowerCase().split(option.toLowerCase()).length);
    const json = JSON.stringify({ value: options[counts.indexOf(Math.max(...counts))] });
    const all = counts.reduce((sum, count) => sum + count, 0);
    // The probability of an option is its share of the counts. Each count is one more than the number of occurrences.
    return measured ? { name, json, optionLogprobs: counts.map((count) => Math.log(count / all)) } : { name, json };
  }
  const keys = task.shape.kind === 'keys' ? task.shape.keys : [];
  const lines = text.split('\n').map((line) => line.split(/:\s*/, 2));
  const values = keys.map((key) => [key, lines.find(([field]) => field === key)?.[1] ?? null] as const);
  const json = JSON.stringify(Object.fromEntries(values));
  return measured ? { name, json, fields: keys.map((key) => ({ path: `/${key}`, probability: 1 })) } : { name, json };
}
