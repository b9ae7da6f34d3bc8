import * as v from 'valibot';
import { FREE_TEXT } from '../tasks/extract-shape.ts';
import { DecisionEvidence, x_window } from './decisions-response.ts';
import { count, described, exactOptional } from './values.ts';

export const FINISH_REASONS = ['stop', 'length', 'content_filter'] as const;
export const FinishReason = described(
  v.picklist(FINISH_REASONS),
  'stop: all answers are complete. length: an answer was cut, at max_output_tokens or the end of the context; ' +
    'send a higher limit or less text. ' +
    'content_filter: no answer; sending the same input again does not help.',
);

export const ResponseMessage = v.object({
  role: v.string(),
  content: described(v.string(), 'The same answers as in results or result, as JSON text.'),
});

export const Choice = v.object({ message: ResponseMessage, finish_reason: FinishReason });

export const Usage = v.object({
  prompt_tokens: described(count, 'Prompt tokens: those of the shared context, counted once, and those of each task.'),
  completion_tokens: described(count, 'Tokens that the model chose. Text that the grammar determines is not counted.'),
  total_tokens: count,
});

export const DecideResult = v.object({
  value: described(v.string(), `One of the options; without options, a text of at most ${FREE_TEXT.value} characters.`),
  reason: v.exactOptional(v.string()),
  abstained: exactOptional(v.boolean(), 'true if the model answers that the input does not tell.'),
  x_automated: v.exactOptional(v.nullable(v.boolean())),
  x_answered_by: v.exactOptional(v.string()),
  x_escalation: v.exactOptional(v.literal('failed')),
  x_evidence: v.exactOptional(v.array(DecisionEvidence)),
  x_p_unsure: exactOptional(v.number(), 'Probability that the input does not tell, of a task with unsure.'),
  x_window,
});

export const MultiResult = v.object({
  values: described(v.array(v.string()), 'The options that apply, in the order sent.'),
  probabilities: described(v.record(v.string(), v.number()), 'Probability that each option applies.'),
  set_confidence: described(
    v.number(),
    'Probability that exactly these options apply, if the options are independent.',
  ),
});

/** The answer of an extract task. */
export const ExtractResult = described(v.record(v.string(), v.unknown()), 'An object with the requested fields.');
export const TaskResult = described(
  v.record(v.string(), v.unknown()),
  'The answer of a task: a DecideResult for a decide task, a MultiResult for a multi task, an object with the requested fields for an extract task.',
);

const envelope = {
  id: described(v.string(), "Id of the request in the server's log; the same as the header x-request-id."),
  model: described(v.string(), 'Id of the model that answered.'),
  choices: v.pipe(v.array(Choice), v.length(1)),
  usage: Usage,
};

export const TaskResults = described(
  v.record(v.string(), TaskResult),
  'The answers by the names of their tasks, in the order sent.',
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
  value: described(v.string(), 'The answer: the value of result.'),
});
/** Response of `POST /extract` (docs/interface.md, D-25). `data` is an alias of `result` with the same content. */
export const ExtractResponse = v.object({ ...envelope, result: ExtractResult, data: ExtractResult });
