import * as v from 'valibot';
import { FREE_TEXT } from '../decision/free-text.ts';

const count = v.pipe(v.number(), v.integer(), v.minValue(0));

export const FINISH_REASONS = ['stop', 'length', 'content_filter'] as const;
export const FinishReason = v.pipe(
  v.picklist(FINISH_REASONS),
  v.description(
    'stop: whole. length: the output limit was reached; raise it and send again. ' +
      'content_filter: sending the same input again does not help.',
  ),
);

export const ResponseMessage = v.object({
  role: v.string(),
  content: v.pipe(v.string(), v.description('The answers as JSON text: the same data as results or result.')),
});

export const Choice = v.object({ message: ResponseMessage, finish_reason: FinishReason });

export const Usage = v.object({
  prompt_tokens: v.pipe(count, v.description('The shared part once, and every task its own part.')),
  completion_tokens: v.pipe(count, v.description('Tokens that the model chose; text without a choice is free.')),
  total_tokens: count,
});

export const DecideResult = v.object({
  value: v.pipe(v.string(), v.description(`One of the options, or else at most ${FREE_TEXT.value} characters.`)),
  reason: v.exactOptional(v.string()),
});

/** The answer of an extract task, or of any task in `results`. */
export const ExtractResult = v.pipe(
  v.record(v.string(), v.unknown()),
  v.description('An object of the requested fields.'),
);
export const TaskResult = v.pipe(
  v.record(v.string(), v.unknown()),
  v.description('A DecideResult for a decide task; an object of the requested fields for an extract task.'),
);

const envelope = {
  id: v.pipe(v.string(), v.description('Request identifier, for logs and support; the x-request-id of the response.')),
  model: v.pipe(v.string(), v.description('Model that ran.')),
  choices: v.pipe(v.array(Choice), v.length(1)),
  usage: Usage,
};

export const TaskResults = v.pipe(
  v.record(v.string(), TaskResult),
  v.description('One answer for each task, by its name, in the order sent.'),
);

/** RunTasksResponse, DecideResponse and ExtractResponse (docs/interface.md, D-23 to D-27). */
export const RunTasksResponse = v.object({
  ...envelope,
  results: TaskResults,
  tasks: TaskResults,
});
export type RunTasksResponse = v.InferOutput<typeof RunTasksResponse>;
export const DecideResponse = v.object({
  ...envelope,
  result: DecideResult,
  decision: DecideResult,
  value: v.pipe(v.string(), v.description('The bare answer.')),
});
export const ExtractResponse = v.object({ ...envelope, result: ExtractResult, data: ExtractResult });
