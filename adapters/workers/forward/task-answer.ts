import * as v from 'valibot';
import type { BatchAnswer, TaskBatch } from '../../../lib/backend.ts';
import { splitMembers } from '../../../lib/json/members.ts';
import { parseModelId } from '../../../lib/model-id.ts';
import { unreachable } from './box-fault.ts';

const Count = v.pipe(v.number(), v.integer(), v.minValue(0));

/** What is read of a RunTasksResponse; its results are taken from the text, where they are in order. */
const RunTasksResponse = v.object({
  model: v.string(),
  choices: v.pipe(v.array(v.object({ finish_reason: v.picklist(['stop', 'length', 'content_filter']) })), v.length(1)),
  usage: v.object({ prompt_tokens: Count, completion_tokens: Count }),
});

/** A box's answer to `tasksBody(batch)`. Throws a `BoxFault` for anything that is not one whole answer to each task. */
export function taskAnswer(text: string, batch: TaskBatch): BatchAnswer {
  try {
    const { model, choices, usage } = v.parse(RunTasksResponse, JSON.parse(text));
    const results = splitMembers(splitMembers(text).get('results') ?? '');
    const answers = batch.tasks.map(({ name }) => {
      const json = results.get(name);
      if (json === undefined) throw new Error('an answer is missing');
      return { name, json };
    });
    return {
      model: parseModelId(model),
      answers,
      finishReason: choices[0]!.finish_reason,
      usage: { promptTokens: usage.prompt_tokens, completionTokens: usage.completion_tokens },
    };
  } catch (cause) {
    throw unreachable(cause);
  }
}
