import type { DecideTask, ExtractTask, Task, TaskBatch } from '../backend.ts';
import { mediaOf, toChatMessages } from '../chat/messages.ts';
import { type Fuel, sharedFuel } from '../grammar/fuel.ts';
import { labelTasks, withUnsure } from '../questions/question-answers.ts';
import type * as wire from '../schema/task.ts';
import type { DecideRequest, ExtractRequest, RunTasksRequest } from '../schema/task-request.ts';
import { extractTask } from './extract-shape.ts';

/** Name of the only task of `/decide` and `/extract`. */
const ONLY_TASK = 'result';

/*
 * The functions below convert validated requests to a `TaskBatch`: aliases resolved, defaults filled in. If both names
 * of an alias pair are present, validation has ensured that they are equal, so either is used.
 */

/**
 * Converts a request of `POST /v1/tasks`. Throws `invalid_type`, `invalid_value` or `unsupported_schema` if
 * `answerShape` refuses the schema or keys of an extract task.
 */
export function batchOfTasks(request: RunTasksRequest): TaskBatch {
  const fuel = sharedFuel();
  const tasks = request.tasks.flatMap((task, i): Task[] => {
    const name = (task.name ?? task.id)!;
    if (task.type === 'extract') return [extraction(name, task, `tasks[${i}]`, fuel)];
    if (task.type === 'decide') return [decideTask(name, task)];
    const labels = task.options.map((option) => [option, null] as const);
    return labelTasks(task.question, labels, name, name);
  });
  return withProbabilities({ ...sharedPart(request), tasks }, request.max_error, request.tasks.some(isWeighed));
}

/** Converts a request of `POST /decide`. The only task has the name `ONLY_TASK`. */
export function batchOfDecision(request: DecideRequest): TaskBatch {
  const { target_language: _, ...task } = request;
  return withProbabilities(
    { ...sharedPart(request), tasks: [decideTask(ONLY_TASK, task)] },
    request.max_error,
    isWeighed(request),
  );
}

/**
 * Converts a request of `POST /extract`. The only task has the name `ONLY_TASK`. Throws the same errors as
 * `batchOfTasks`.
 */
export function batchOfExtraction(request: ExtractRequest): TaskBatch {
  const { target_language: _, ...task } = request;
  return { ...sharedPart(request), tasks: [extraction(ONLY_TASK, task, '')] };
}

type Shared = Omit<RunTasksRequest, 'tasks' | 'max_error'>;

function sharedPart(request: Shared): Omit<TaskBatch, 'tasks'> {
  const language = request.target_language ?? request.output_language;
  return {
    model: request.model,
    input: request.messages ? { messages: toChatMessages(request.messages) } : { context: request.context! },
    media: mediaOf(request.images, request.audio),
    temperature: request.temperature,
    maxOutputTokens: request.max_output_tokens,
    ...(language === undefined ? {} : { language }),
    ...(request.cache_salt ? { cacheSalt: request.cache_salt } : {}),
  };
}

function isWeighed(task: object): boolean {
  return 'evidence' in task && Boolean(task.evidence);
}

/** Asks for probabilities if the answer to a task depends on them. */
function withProbabilities(batch: TaskBatch, maxError: number | undefined, weighed: boolean): TaskBatch {
  const needed =
    weighed || batch.tasks.some((task) => task.type === 'decide' && (task.unsure || task.first !== undefined));
  if (!needed && maxError === undefined) return batch;
  return { ...batch, probabilities: { calibrated: true, ...(maxError === undefined ? {} : { maxError }) } };
}

type DecideFields = Pick<
  wire.DecideTask,
  'question' | 'options' | 'choices' | 'instruction' | 'target_language' | 'unsure'
>;

function decideTask(name: string, fields: DecideFields): DecideTask {
  const task: DecideTask = {
    type: 'decide',
    name,
    question: fields.question,
    ...(name === ONLY_TASK ? {} : { id: name }),
  };
  const options = fields.options ?? fields.choices;
  if (options) task.options = options;
  if (fields.instruction !== undefined) task.instruction = fields.instruction;
  if (fields.target_language) task.language = fields.target_language;
  return withUnsure(task, fields.unsure);
}

type ExtractFields = Pick<
  wire.ExtractTask,
  'instruction' | 'keys' | 'fields' | 'schema' | 'verbatim' | 'target_language'
>;

function extraction(name: string, fields: ExtractFields, path: string, fuel?: Fuel): ExtractTask {
  const { instruction, target_language: language } = fields;
  return { ...extractTask(fields, instruction, path, fuel), name, ...(language ? { language } : {}) };
}
