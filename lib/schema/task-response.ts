import * as v from 'valibot';
import { FREE_TEXT } from '../tasks/extract-shape.ts';
import { DecisionEvidence, x_window } from './decisions-response.ts';

const count = v.pipe(v.number(), v.integer(), v.minValue(0));

export const FINISH_REASONS = ['stop', 'length', 'content_filter'] as const;
export const FinishReason = v.pipe(
  v.picklist(FINISH_REASONS),
  v.description(
    'stop: all answers are complete. length: an answer was cut, at max_output_tokens or the end of the context; ' +
      'send a higher limit or less text. ' +
      'content_filter: no answer; sending the same input again does not help.',
  ),
);

export const ResponseMessage = v.object({
  role: v.string(),
  content: v.pipe(v.string(), v.description('The same answers as in results or result, as JSON text.')),
});

export const Choice = v.object({ message: ResponseMessage, finish_reason: FinishReason });

export const Usage = v.object({
  prompt_tokens: v.pipe(
    count,
    v.description('Prompt tokens: those of the shared context, counted once, and those of each task.'),
  ),
  completion_tokens: v.pipe(
    count,
    v.description('Tokens that the model chose. Text that the grammar determines is not counted.'),
  ),
  total_tokens: count,
});

export const DecideResult = v.object({
  value: v.pipe(
    v.string(),
    v.description(`One of the options; without options, a text of at most ${FREE_TEXT.value} characters.`),
  ),
  reason: v.exactOptional(v.string()),
  abstained: v.exactOptional(
    v.pipe(v.boolean(), v.description('true if the model answers that the input does not tell.')),
  ),
  x_automated: v.exactOptional(v.nullable(v.boolean())),
  x_answered_by: v.exactOptional(v.string()),
  x_escalation: v.exactOptional(v.literal('failed')),
  x_evidence: v.exactOptional(v.array(DecisionEvidence)),
  x_p_unsure: v.exactOptional(
    v.pipe(v.number(), v.description('Probability that the input does not tell, of a task with unsure.')),
  ),
  x_window,
});

export const MultiResult = v.object({
  values: v.pipe(v.array(v.string()), v.description('The options that apply, in the order sent.')),
  probabilities: v.pipe(v.record(v.string(), v.number()), v.description('Probability that each option applies.')),
  set_confidence: v.pipe(
    v.number(),
    v.description('Probability that exactly these options apply, if the options are independent.'),
  ),
});

/** The answer of an extract task. */
export const ExtractResult = v.pipe(
  v.record(v.string(), v.unknown()),
  v.description('An object with the requested fields.'),
);
export const TaskResult = v.pipe(
  v.record(v.string(), v.unknown()),
  v.description(
    'The answer of a task: a DecideResult for a decide task, a MultiResult for a multi task, an object with the requested fields for an extract task.',
  ),
);

const envelope = {
  id: v.pipe(v.string(), v.description("Id of the request in the server's log; the same as the header x-request-id.")),
  model: v.pipe(v.string(), v.description('Id of the model that answered.')),
  choices: v.pipe(v.array(Choice), v.length(1)),
  usage: Usage,
};

export const TaskResults = v.pipe(
  v.record(v.string(), TaskResult),
  v.description('The answers by the names of their tasks, in the order sent.'),
);

/** Response of `POST /v1/tasks` (docs/interface.md, D-23). `tasks` is an alias of `results` with the same content. */
export const RunTasksResponse = v.object({
  ...envelope,
  results: TaskResults,
  tasks: TaskResults,
});
export type RunTasksResponse = v.InferOutput<typeof RunTasksResponse>;
/** Response of `POST /decide` (docs/interface.md, D-24). `decision` is an alias of `result`; `value` is its value. */
export const DecideResponse = v.object({
  ...envelope,
  result: DecideResult,
  decision: DecideResult,
  value: v.pipe(v.string(), v.description('The answer: the value of result.')),
});
/** Response of `POST /extract` (docs/interface.md, D-25). `data` is an alias of `result` with the same content. */
export const ExtractResponse = v.object({ ...envelope, result: ExtractResult, data: ExtractResult });
