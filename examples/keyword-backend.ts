import { AssayError, type ChatEvent, type InferenceBackend, parseModelId, type Task, type TaskBatch } from 'assay';

const MODEL = parseModelId('example/keywords');

/**
 * Answers without a model, by counting words: a decide task with the option that occurs most often in the context, an
 * extract task from `key: value` lines. Replace it with anything that answers.
 */
export const keywordBackend: InferenceBackend = {
  async listModels() {
    return [{ id: MODEL, status: 'active' }];
  },

  async runTasks(batch, call) {
    if (batch.model !== MODEL) {
      throw new AssayError('model_not_found', `There is one model here: ${MODEL}.`, { param: 'model' });
    }
    call.signal.throwIfAborted();
    await call.admit();
    const text = textOf(batch);
    const answers = batch.tasks.map((task) => ({ name: task.name, json: JSON.stringify(answer(task, text)) }));
    const promptTokens = text.split(/\s+/).length;
    return { model: MODEL, answers, finishReason: 'stop', usage: { promptTokens, completionTokens: 0 } };
  },

  // biome-ignore lint/correctness/useYield: it refuses before there is anything to say
  async *chat(): AsyncGenerator<ChatEvent> {
    throw new AssayError('model_not_loaded', 'Keywords do not chat.');
  },
};

function textOf({ input }: TaskBatch): string {
  if ('context' in input) return input.context;
  return input.messages.flatMap(({ parts }) => parts.map((part) => (part.type === 'text' ? part.text : ''))).join('\n');
}

function answer(task: Task, text: string): unknown {
  if (task.type === 'decide') {
    const count = (word: string) => text.toLowerCase().split(word.toLowerCase()).length;
    const [best = ''] = [...(task.options ?? [])].sort((a, b) => count(b) - count(a));
    return { value: best };
  }
  const keys = task.shape.kind === 'keys' ? task.shape.keys : [];
  const lines = text.split('\n').map((line) => line.split(/:\s*/, 2));
  return Object.fromEntries(keys.map((key) => [key, lines.find(([name]) => name === key)?.[1] ?? null]));
}
