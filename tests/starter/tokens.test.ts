import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { atOnce } from '../../lib/at-once.ts';
import type { Task } from '../../lib/backend.ts';
import type { Json, JsonSchema } from '../../lib/contract/answer-shape.ts';
import type { ChatMessage } from '../../lib/contract/conversation.ts';
import type { Constraint } from '../../lib/grammar/constraint.ts';
import { expandShorthand, isShorthand } from '../../lib/tasks/check-answer-schema.ts';
import { taskGrammar } from '../../lib/tasks/task-grammar.ts';
import { taskEncoder } from '../../runtime/contracts/assay.ts';
import { loadTextModel } from '../../runtime/text/text-model.ts';

/*
 * The starter model reads exactly the tokens in service that it was trained on: `golden.jsonl` has what training read.
 */

interface Sample {
  context: string;
  /** Messages before the text, which is then the last user message. */
  messages?: [role: string, text: string][];
  prefix: number[];
  tasks: { task: Record<string, unknown>; prompt: number[]; answer: number[]; chosen: number[] }[];
}

const samples: Sample[] = readFileSync(new URL('golden.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line));

const model = await loadTextModel(new URL('../../models/starter', import.meta.url).pathname);

/** A task in the form of the backends. */
function taskOf({ keys, schema, ...task }: Record<string, unknown>): Task {
  const shape = schema
    ? { kind: 'schema', schema: isShorthand(schema as Json) ? expandShorthand(schema as JsonSchema) : schema }
    : keys
      ? { kind: 'keys', keys }
      : { kind: 'open' };
  return { name: 't', ...task, ...(task.type === 'extract' ? { shape } : {}) } as unknown as Task;
}

describe('prompts', () => {
  it.each(samples)('$context', ({ context, messages, prefix, tasks }) => {
    const said = [...(messages ?? []), ['user', context]].map(([role, text]) => ({
      role,
      parts: [{ type: 'text', text }],
    }));
    const asked = tasks.map(({ task }) => taskOf(task));
    const encoder = taskEncoder(model, {
      model: 'assay/starter',
      input: messages ? { messages: said as ChatMessage[] } : { context },
      media: [],
      tasks: asked,
      temperature: 0,
      maxOutputTokens: 16,
    });
    const { prefix: begun, branch } = atOnce(encoder);
    expect(begun).toEqual(prefix);
    expect(asked.map((task) => atOnce(branch(task)))).toEqual(tasks.map(({ prompt }) => prompt));
  });
});

describe('answers', () => {
  const answers = samples.flatMap(({ tasks }) => tasks).map((sample) => ({ ...sample, task: taskOf(sample.task) }));

  it.each(answers.filter(({ task }) => task.type === 'decide' && task.options))('$task', ({ task, answer, chosen }) => {
    const { head, choice, constraint } = taskGrammar(task, model.vocabulary);
    const begun = choice!.paths.map((path) => [...head, ...path]);
    const right = begun.flatMap((path, i) => (answer.slice(0, path.length).join() === path.join() ? [i] : []));
    expect(right).toHaveLength(1);
    expect(spell(begun[right[0]!]!, constraint(right[0]), answer).tokens).toEqual(answer);
    // Training asks for the tokens at which options differ.
    const parting = answer.flatMap((token, place) =>
      begun.some((path) => path[place] !== token && samePath(path, answer, place)) ? [place] : [],
    );
    expect(parting.filter((place) => !chosen[place])).toEqual([]);
    expect(parting.length).toBeGreaterThan(0);
  });

  it.each(answers.filter(({ task }) => task.type === 'extract' || !task.options))(
    '$task',
    ({ task, answer, chosen }) => {
      const grammar = taskGrammar(task, model.vocabulary);
      const written = spell(grammar.head, grammar.constraint(), answer);
      expect(written.tokens).toEqual(answer);
      // Training asks for the tokens that the grammar leaves open.
      expect(written.chosen.filter((place) => !chosen[place])).toEqual([]);
    },
  );
});

/** Tells whether both agree on the first `length` tokens, and the path continues after them. */
function samePath(path: readonly number[], answer: readonly number[], length: number): boolean {
  return path.length > length && path.slice(0, length).join() === answer.slice(0, length).join();
}

/** The tokens of an answer in the engine's order: forced ones from the grammar, chosen ones from `answer`. */
function spell(head: readonly number[], constraint: Constraint, answer: readonly number[]) {
  const tokens = [...head];
  const chosen: number[] = [];
  while (!constraint.complete) {
    tokens.push(...constraint.takeForced());
    if (constraint.complete || tokens.length >= answer.length) break;
    chosen.push(tokens.length);
    constraint.accept(answer[tokens.length]!);
    tokens.push(answer[tokens.length]!);
  }
  return { tokens, chosen };
}
