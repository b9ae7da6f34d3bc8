import * as v from 'valibot';
import { at } from '../at.ts';
import type { BatchAnswer, Call, DecideTask, InferenceBackend, Task, TaskAnswer, TaskBatch } from '../backend.ts';
import { sizeOfRequest } from '../limits/request-size.ts';
import { messageText } from '../prompt/tasks.ts';
import { LabelChoiceAnswer, LevelAnswer, NoulAnswer } from '../schema/systemone-response.ts';
import { indexOfHighest, logprobsOf, normalised } from '../tasks/logprobs.ts';

/* Asks questions whose answers are not certain enough again: another model, here or on another server. */

/** Sets which questions are asked again, and whom. */
export interface Escalation {
  /** Probability of the likeliest option below which a question is asked again. */
  below: number;
  /** Answers a batch that consists of such questions. */
  ask(batch: TaskBatch, call: Call): Promise<Pick<BatchAnswer, 'model' | 'answers'>>;
}

/**
 * Returns a backend that asks each question whose answer is less probable than `below`, or must not be automated at the
 * request's `maxError`, once more. Every answer to a question says which model gave it. If that fails, the first answer
 * stays and says so. Questions of many labels and extractions are not asked again.
 */
export function escalating(backend: InferenceBackend, { below, ask }: Escalation): InferenceBackend {
  return {
    listModels: (call) => backend.listModels(call),
    chat: (request, call) => backend.chat(request, call),
    async runTasks(asked, call) {
      // A request for tasks may ask for no probabilities; at another temperature than 0, its answers are drawn.
      const batch = asked.probabilities || asked.temperature > 0 ? asked : { ...asked, probabilities: WEIGHED };
      const first = await backend.runTasks(batch, call);
      const uncertain = batch.tasks.flatMap((task, i) => (isUncertain(task, at(first.answers, i), below) ? [i] : []));
      const again = new Map<number, TaskAnswer>();
      if (uncertain.length > 0) {
        const tasks = uncertain.map((i) => at(batch.tasks, i));
        const answers = await answersOf({ ...batch, tasks }, call, ask);
        for (const [place, i] of uncertain.entries()) {
          again.set(i, answers?.[place] ?? { ...at(first.answers, i), answeredBy: first.model, escalation: 'failed' });
        }
      }
      const answers = first.answers.map(
        (answer, i): TaskAnswer =>
          again.get(i) ?? (answer.optionLogprobs ? { ...answer, answeredBy: first.model } : answer),
      );
      return { ...first, answers };
    },
  };
}

/** Asks for the probabilities that tell how certain an answer is. */
const WEIGHED: NonNullable<TaskBatch['probabilities']> = { calibrated: true };

function isUncertain(task: Task, { optionLogprobs, automated }: TaskAnswer, below: number): boolean {
  if (task.type === 'extract' || task.first !== undefined || !optionLogprobs) return false;
  return Math.exp(Math.max(...optionLogprobs)) < below || automated === false;
}

/**
 * Returns the answers of the other model; null if it gives none, or if the caller's quota has too few tokens left for
 * it.
 */
async function answersOf(batch: TaskBatch, call: Call, ask: Escalation['ask']): Promise<readonly TaskAnswer[] | null> {
  try {
    const { model, answers } = await ask(batch, call);
    return answers.map((answer) => ({ ...answer, answeredBy: model }));
  } catch {
    call.signal.throwIfAborted();
    // Whatever went wrong there, the first answer is one.
    return null;
  }
}

/** Returns a function that asks another model of a backend. It throws if the caller may not use that model. */
export function askModel(backend: InferenceBackend, model: string): Escalation['ask'] {
  return (batch, call) => {
    if (call.allows?.(model) === false) throw new Error('The key does not allow the second model.');
    return backend.runTasks({ ...batch, model }, call);
  };
}

/** Describes a server that answers System One. */
export interface EscalationServer {
  /** Its base URL, or that of its operation. */
  url: string;
  key?: string | undefined;
  fetch: typeof fetch;
  timeoutMs: number;
}

const Answers = v.object({
  model: v.string(),
  answers: v.record(v.string(), v.variant('type', [NoulAnswer, LabelChoiceAnswer, LevelAnswer])),
});

/** Returns a function that asks a server's System One. It throws whatever goes wrong. */
export function askSystemOne({ url, key, fetch, timeoutMs }: EscalationServer): Escalation['ask'] {
  const address = /\/systemone\/?$/.test(url) ? url : `${url.replace(/\/+(v1\/*)?$/, '')}/v1/systemone`;
  return async (batch, { signal, requestId, admit }) => {
    if (batch.media.length > 0) throw new Error('Images and audio are not sent to another server.');
    await admit(sizeOfRequest(batch).tokens);
    // The cast is safe: only questions with options are asked again.
    const tasks = batch.tasks as readonly DecideTask[];
    const response = await fetch(address, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-request-id': requestId,
        ...(key ? { authorization: `Bearer ${key}` } : {}),
      },
      body: JSON.stringify({
        state: stateOf(batch),
        questions: Object.fromEntries(tasks.map((task, i) => [`q${i}`, questionOf(task)])),
      }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    });
    if (!response.ok) throw new Error(`The server answered ${response.status}.`);
    const { model, answers } = v.parse(Answers, await response.json());
    // A cast: `model` only names the answerer.
    return { model: model as BatchAnswer['model'], answers: tasks.map((task, i) => answerOf(task, answers[`q${i}`])) };
  };
}

function stateOf({ input }: TaskBatch): unknown {
  if ('context' in input) return input.state === undefined ? input.context : JSON.parse(input.state);
  return input.messages.map((message) => ({ role: message.role, content: messageText(message) }));
}

function questionOf({ kind, question, instruction, options = [], descriptions = [] }: DecideTask): object {
  const instructions = instruction ? `${question}\n${instruction}` : question;
  if (kind === 'predicate') {
    const [yes = null, no = null] = descriptions;
    return { type: 'noul', instructions, criteria: { true: yes, false: no } };
  }
  if (kind === 'score' && !descriptions.some(Boolean)) return { type: 'score', instructions, criteria: options };
  const criteria = options.map((option, i) => ({ key: option, description: descriptions[i] ?? null }));
  return { type: 'choice', instructions, criteria };
}

function answerOf(
  { name, options = [] }: DecideTask,
  answer: v.InferOutput<typeof Answers>['answers'][string] | undefined,
): TaskAnswer {
  if (!answer) throw new Error('The server left a question out.');
  const probabilities =
    answer.type === 'noul'
      ? [answer.noul, 1 - answer.noul]
      : options.map((option, i) => answer.probabilities[answer.type === 'choice' ? option : String(i)] ?? 0);
  const optionLogprobs = normalised(logprobsOf(probabilities));
  return { name, json: JSON.stringify({ value: options[indexOfHighest(optionLogprobs)] }), optionLogprobs };
}
