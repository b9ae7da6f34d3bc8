import type { DecideTask, Task, TaskBatch } from '../backend.ts';
import type { ChatMessage } from '../conversation.ts';
import { compactSchema } from './compact-schema.ts';
import { LANGUAGE_NAMES } from './language-names.ts';

/** What every task of a batch is told once. Part of the shared prefix, and of the starter model's training data. */
export const TASK_SYSTEM =
  'Do the task at the end of the conversation with one JSON object and nothing else. ' +
  'A question: {"value": the answer}, one of the options where there are options; add "reason" only where it is asked for. ' +
  'An extraction: the fields asked for, null for what the text does not say.';

/** Stands between what all tasks share and the task itself, inside the last user turn. */
export const TASK_SEPARATOR = '\n\n';

/**
 * The prompt of a batch. Rendered by the model's chat template as `messages`, then one user message made of
 * `openMessage + TASK_SEPARATOR + task`. The cut before `task` is where the shared prefix ends and the branches begin.
 */
export interface TaskPrompt {
  messages: readonly ChatMessage[];
  /** The shared beginning of the last user turn: the context, or the last user message. May be empty. */
  openMessage: string;
  /** One text for each task, in the batch's order. */
  tasks: readonly string[];
}

export function taskPrompt(batch: TaskBatch): TaskPrompt {
  const tasks = batch.tasks.map((task) => taskText(task, task.language ?? batch.language));
  if ('context' in batch.input) {
    return { messages: [system([])], openMessage: batch.input.context, tasks };
  }
  const instructions = batch.input.messages.filter((turn) => turn.role === 'system');
  const talk = batch.input.messages.filter((turn) => turn.role !== 'system');
  const last = talk.at(-1);
  const open = last?.role === 'user' ? last : undefined;
  return {
    messages: [system(instructions), ...(open ? talk.slice(0, -1) : talk)],
    openMessage: open ? messageText(open) : '',
    tasks,
  };
}

/** The texts of a turn joined by a line break, behind the name of who speaks where one was sent: templates know roles alone. */
export function messageText({ name, parts }: ChatMessage): string {
  const text = parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
  return name ? `${name}: ${text}` : text;
}

function system(instructions: readonly ChatMessage[]): ChatMessage {
  const text = [TASK_SYSTEM, ...instructions.map(messageText)].join('\n\n');
  return { role: 'system', parts: [{ type: 'text', text }] };
}

/** One task as the model reads it: a line for each thing said. */
export function taskText(task: Task, language: Task['language']): string {
  const lines =
    task.type === 'decide'
      ? [`Question: ${task.question}`, ...optionLines(task)]
      : [`Extract: ${task.instruction}`, ...shapeLine(task.shape)];
  if (task.type === 'decide' && isInstructed(task)) lines.push(`Instruction: ${task.instruction}`);
  if (language) lines.push(`Language of the values: ${LANGUAGE_NAMES[language]}`);
  return lines.join('\n');
}

/** The options in their order, and a line for each one that is described. */
function optionLines({ options, descriptions = [] }: DecideTask): string[] {
  if (!options) return [];
  const described = options.flatMap((option, i) =>
    descriptions[i] ? [`${JSON.stringify(option)}: ${descriptions[i]}`] : [],
  );
  return [`Options: ${JSON.stringify(options)}`, ...described];
}

/** An empty instruction is none. */
export function isInstructed({ instruction }: DecideTask): boolean {
  return instruction !== undefined && instruction.trim() !== '';
}

function shapeLine(shape: Extract<Task, { type: 'extract' }>['shape']): string[] {
  switch (shape.kind) {
    case 'keys':
      return [`Keys: ${JSON.stringify(shape.keys)}`];
    case 'schema':
      return [
        ...(shape.keys ? [`Keys: ${JSON.stringify(shape.keys)}`] : []),
        `Schema: ${JSON.stringify(compactSchema(shape.schema))}`,
      ];
    default:
      return [];
  }
}
