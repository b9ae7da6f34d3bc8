import * as v from 'valibot';
import { at } from '../../../lib/at.ts';
import type { BatchAnswer, Task, TaskAnswer, TaskBatch } from '../../../lib/backend.ts';
import { splitItems, splitMembers } from '../../../lib/json/members.ts';
import { parseModelId } from '../../../lib/model-id.ts';
import {
  ChoiceAnswer,
  DecisionsUsage,
  ExtractAnswer,
  PredicateAnswer,
  RefusalAnswer,
  ScoreAnswer,
} from '../../../lib/schema/decisions-response.ts';
import { indexOfHighest, logprobsOf } from '../../../lib/tasks/logprobs.ts';
import { unreachable } from './upstream-fault.ts';

/**
 * Returns the answer to a batch from `text`, the body with which an upstream answered `questionsBody(batch)`. Throws
 * `UpstreamFault` unless it has a valid answer to each task.
 */
export function questionsAnswer(text: string, batch: TaskBatch): BatchAnswer {
  try {
    const members = splitMembers(text);
    const items = splitItems(members.get('answers') ?? '');
    if (items.length !== batch.tasks.length) throw new Error('there are not as many answers as questions');
    const usage = v.parse(DecisionsUsage, JSON.parse(members.get('usage') ?? 'null'));
    const answers = batch.tasks.map((task, i) => taskAnswer(at(items, i), task));
    return {
      model: parseModelId(JSON.parse(members.get('model') ?? '""')),
      answers,
      finishReason: 'stop',
      usage: { promptTokens: usage.input_tokens, completionTokens: usage.output_tokens },
      cachedTokens: usage.input_tokens_details.cached_tokens,
    };
  } catch (cause) {
    throw unreachable(cause);
  }
}

/**
 * Converts an upstream's answer to one question. Works on the JSON text, because parsing the data of an extraction
 * could change the order of its members.
 */
function taskAnswer(text: string, task: Task): TaskAnswer {
  const { name } = task;
  const answer: unknown = JSON.parse(text);
  if (task.type === 'extract') {
    const { fields } = v.parse(ExtractAnswer, answer);
    const json = splitMembers(text).get('data')!;
    return { name, json, fields: fields.map(({ path, probability }) => ({ path, probability })) };
  }
  // The edge asks upstreams to abstain below 0, so only a model that itself abstains does.
  const refusal = v.safeParse(RefusalAnswer, answer);
  if (refusal.success) {
    const optionLogprobs = logprobsOf(refusal.output.x_probabilities ?? []);
    if (optionLogprobs.length !== task.options?.length) throw new Error('a refusal lacks its probabilities');
    const value = task.options[indexOfHighest(optionLogprobs)];
    return { name, json: JSON.stringify({ value, abstained: true }), optionLogprobs, abstained: true };
  }
  const probabilities = probabilitiesOf(answer, task.kind);
  if (probabilities.length !== task.options?.length) throw new Error('there are not as many probabilities as options');
  const optionLogprobs = logprobsOf(probabilities);
  return { name, json: JSON.stringify({ value: task.options[indexOfHighest(optionLogprobs)] }), optionLogprobs };
}

function probabilitiesOf(answer: unknown, kind: 'predicate' | 'choice' | 'score' = 'choice'): number[] {
  switch (kind) {
    case 'predicate': {
      const { probability } = v.parse(PredicateAnswer, answer);
      return [probability, 1 - probability];
    }
    case 'choice':
      return v.parse(ChoiceAnswer, answer).probabilities.map(({ probability }) => probability);
    case 'score':
      return v.parse(ScoreAnswer, answer).probabilities.map(({ probability }) => probability);
  }
}
