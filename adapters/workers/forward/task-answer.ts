import * as v from 'valibot';
import { at } from '../../../lib/at.ts';
import type { BatchAnswer, TaskBatch } from '../../../lib/backend.ts';
import { splitMembers } from '../../../lib/json/members.ts';
import { parseModelId } from '../../../lib/model-id.ts';
import { CUT_TASKS_HEADER, readCutTasks } from '../../../lib/tasks/cut-tasks.ts';
import { unreachable } from './upstream-fault.ts';

const Count = v.pipe(v.number(), v.integer(), v.minValue(0));

/** Describes the members of a RunTasksResponse that are read, except `results`. */
const Envelope = v.object({
  model: v.string(),
  choices: v.pipe(v.array(v.object({ finish_reason: v.picklist(['stop', 'length', 'content_filter']) })), v.length(1)),
  usage: v.object({ prompt_tokens: Count, completion_tokens: Count }),
});

/**
 * Returns the answer to a batch from the body and headers with which an upstream answered `tasksBody(batch)`. Throws
 * `UpstreamFault` unless they are valid and have an answer to each task, which may be cut.
 */
export function taskAnswer({ text, headers }: { text: string; headers: Headers }, batch: TaskBatch): BatchAnswer {
  try {
    // Splits the text instead of parsing it whole: JavaScript objects reorder names such as 10 and lose __proto__.
    const members = splitMembers(text);
    const value = (name: string) => JSON.parse(members.get(name) ?? 'null');
    const results = splitMembers(members.get('results') ?? '');
    const { model, choices, usage } = v.parse(Envelope, {
      model: value('model'),
      choices: value('choices'),
      usage: value('usage'),
    });
    const names = batch.tasks.map(({ name }) => name);
    const cut = readCutTasks(headers.get(CUT_TASKS_HEADER), names);
    return {
      model: parseModelId(model),
      answers: names.map((name) => ({ name, json: results.get(name) ?? missing(name) })),
      finishReason: at(choices, 0).finish_reason,
      ...(cut ? { cut } : {}),
      usage: { promptTokens: usage.prompt_tokens, completionTokens: usage.completion_tokens },
    };
  } catch (cause) {
    throw unreachable(cause);
  }
}

function missing(name: string): never {
  throw new Error(`there is no answer to ${name}`);
}
