import { at } from '../../lib/at.ts';
import type { Task, TaskBatch } from '../../lib/backend.ts';
import type { ChatMessage } from '../../lib/contract/conversation.ts';
import { AssayError } from '../../lib/errors.ts';
import { QuotedTexts } from '../../lib/grammar/text/quoted-texts.ts';
import { checkLength, checkMessages, checkRequestShare, READ_IN_WINDOWS } from '../../lib/limits/request-size.ts';
import { TASK_SEPARATOR, taskPrompt, taskText } from '../../lib/prompt/tasks.ts';
import { withUnsure } from '../../lib/questions/question-answers.ts';
import type { ModelContract } from '../../lib/schema/model-list.ts';
import { logSum, normalised } from '../../lib/tasks/logprobs.ts';
import { orderings, reordered } from '../../lib/tasks/orders.ts';
import { type TaskGrammar, taskGrammarInParts } from '../../lib/tasks/task-grammar.ts';
import { VERSION } from '../../lib/version.ts';
import { encodeSegments, encodeWithBegin } from '../text/segment.ts';
import { toTemplateMessages } from '../text/template/template-message.ts';
import type { TextModel } from '../text/text-model.ts';

/*
 * Assay's own contract, for every model that writes text and has no other. The prompt is a conversation in the model's
 * chat template, with thinking off: what to do, the text, and last one task (`lib/prompt/tasks.ts` has the words, by
 * which also the edge counts). The answer is JSON under the task's grammar. Of options, all are read: the exact
 * log-probability of each one's JSON, over all its tokens, normalised over the options. Everything else is written.
 */

export interface WritingContract {
  readonly info: ModelContract;
  readonly writes: true;
  readonly base?: undefined;
  readonly lastLayer?: undefined;
  readonly whole?: undefined;
  ask: typeof ask;
}

export const ASSAY: WritingContract = {
  info: {
    name: 'assay',
    version: '1',
    temperature: "none: the model's own probabilities; assay calibrate fits temperatures to them",
  },
  writes: true,
  ask,
};

/** The wording of Assay's questions, as a change of it would change the probabilities. */
const WORDING = taskPrompt({
  input: { context: 'a' },
  media: [],
  tasks: [
    { type: 'decide', name: 'a', question: 'b', options: ['c', 'd'], descriptions: ['e', null], instruction: 'f' },
    withUnsure({ type: 'decide', name: 'a', question: 'b', options: ['c'] }, true),
  ],
  temperature: 0,
  maxOutputTokens: 1,
});

/** Returns what the wording of a contract's questions depends on. */
export function wordingOf(contract: ModelContract | undefined): unknown {
  // Code writes the prompts of an author's contract, so a new version of Assay may word them otherwise.
  return contract && contract.name !== ASSAY.info.name ? [contract, VERSION] : WORDING;
}

/** Sets the maximum tokens of a prompt, and of a prompt and its answer together. */
export interface PromptLimits {
  maxPromptLen: number;
  contextLength: number;
}

/** Describes a task as one branch answers it, with its options in one order. */
export interface AskedBranch {
  task: Task;
  /** Index of the task in the batch. */
  index: number;
  /** Index in the task's options of each option that the branch shows; empty if it shows none. */
  order: readonly number[];
  grammar: TaskGrammar;
  /** Tokens after the prefix, up to what is read or written. */
  suffix: readonly number[];
}

/**
 * Asks a batch: tokens that all branches begin with, and a branch for each task and each order of its options. Throws
 * `unsupported_modality` for media that the model does not read, `invalid_value` for a task that quotes from an input
 * without text, `unsupported_schema` for an answer that no grammar can enforce, `engine_failed` if the chat template
 * fails, and `input_too_long` if a task with its prefix has more than `maxPromptLen` tokens or, with probabilities,
 * exceeds `contextLength` together with its longest option, or if all tasks have more than `MOST_REQUEST_TOKENS`.
 *
 * Yields after the prefix and after each branch, so that a large batch does not keep the process from other requests.
 */
function* ask(text: TextModel, batch: TaskBatch, { maxPromptLen, contextLength }: PromptLimits) {
  const { prefix, branch } = yield* taskEncoder(text, batch, maxPromptLen);
  const verbatim = batch.tasks.find((task) => task.type === 'extract' && task.verbatim);
  const quoted = new QuotedTexts(verbatim ? textsOf(batch) : []);
  if (verbatim && quoted.beginnings.length === 0) {
    throw new AssayError('invalid_value', 'verbatim needs a text in the input to quote from; send one, or omit it.', {
      param: 'verbatim',
    });
  }
  const all = batch.tasks.flatMap((task, index) => inOrders(task, index, batch));
  const branches: AskedBranch[] = [];
  let tokens = 0;
  yield;
  for (const one of all) {
    const own = yield* branch(one.task);
    const grammar = yield* taskGrammarInParts(one.task, text.vocabulary, quoted);
    // `grammar.head`, the text that begins every answer, is part of the prompt. The length is checked here, before
    // further grammars are compiled.
    const suffix = [...own, ...grammar.head];
    checkLength(prefix.length + suffix.length, maxPromptLen, READ_IN_WINDOWS);
    // With probabilities, options that do not fit in the context are an error, because no probability can express that.
    if (batch.probabilities) checkLength(prefix.length + suffix.length + longestPath(grammar), contextLength);
    branches.push({ ...one, grammar, suffix });
    tokens += own.length;
    checkRequestShare(tokens, branches.length, all.length);
    yield;
  }
  return { prefix, branches, promptTokens: prefix.length + tokens };
}

/** Returns the task once; with probabilities, once for each order of its options. */
function inOrders(
  task: Task,
  index: number,
  { probabilities }: TaskBatch,
): Pick<AskedBranch, 'task' | 'index' | 'order'>[] {
  if (task.type === 'extract' || !task.options) return [{ task, index, order: [] }];
  const orders = orderings(task.options.length, probabilities?.orders ?? 1);
  return orders.map((order, i) => ({ task: i === 0 ? task : reordered(task, order), index, order }));
}

/** Returns the texts of a batch's input, which values are quoted from. */
function textsOf({ input }: TaskBatch): string[] {
  if ('context' in input) return [input.context];
  return input.messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])));
}

/** Returns the number of tokens of the longest path of a choice; 0 without a choice. */
export function longestPath({ choice }: TaskGrammar): number {
  return Math.max(0, ...(choice?.paths ?? []).map(({ length }) => length));
}

/**
 * Returns the normalized log-probability of each option, in the task's order of options, not the branch's. Throws
 * `engine_failed` if they were not computed.
 *
 * @param paths log-probability of each path of the branch's choice
 */
export function readOptions({ order, grammar }: AskedBranch, paths: readonly number[] | undefined): number[] {
  if (!paths) throw new AssayError('engine_failed', 'A question was not settled. Ask it alone, or with fewer options.');
  const shown = order.map((_, option) => logSum(paths.filter((_, path) => grammar.choice?.options[path] === option)));
  const given: number[] = [];
  for (const [place, option] of order.entries()) given[option] = at(shown, place);
  return normalised(given);
}

/**
 * Encodes the shared prefix of a task batch, and returns it with the encoder of a task's own part, up to the model's
 * answer. The rendered prompt is split inside the last user message, before the task's text, and both parts are encoded
 * separately, so the prefix has the same tokens whatever the tasks are. Throws `unsupported_modality` for media that
 * the model does not read, `input_too_long` if the prefix, or it and the task, have more than `limit` tokens, and
 * `engine_failed` if the chat template fails.
 */
export function* taskEncoder(model: TextModel, batch: TaskBatch, limit = Number.POSITIVE_INFINITY) {
  const reads = model.media?.kind;
  // Refuses the first part that the model does not read in the order in which they were sent, which differs below.
  const sent = [
    ...('messages' in batch.input ? batch.input.messages : []),
    { role: 'user' as const, parts: batch.media },
  ];
  toTemplateMessages(sent, reads, model.mediaRefusal);
  const { messages, media, openMessage } = taskPrompt(batch);
  checkMessages(messages, limit);
  const open: ChatMessage = { role: 'user', parts: [...media, { type: 'text', text: TASK_MARK }] };
  const templateMessages = toTemplateMessages([...messages, open], reads);
  const rendered = yield* model.template.render(templateMessages, { thinking: false, media: model.media });
  const cut = rendered.findLastIndex(({ trust }) => trust === 'user');
  const last = at(rendered, cut).text;
  // The template may merge the placeholder with an earlier message; it is then at the end of that message.
  const shared = last.slice(0, last.lastIndexOf(TASK_MARK)) + openMessage + TASK_SEPARATOR;
  yield;
  const prefix = yield* encodeWithBegin(model, [...rendered.slice(0, cut), { text: shared, trust: 'user' }]);
  checkLength(prefix.length, limit, READ_IN_WINDOWS);
  const tail = rendered.slice(cut + 1);
  return {
    prefix,
    *branch(task: Task): Generator<void, number[]> {
      const text = taskText(task, task.language ?? batch.language);
      const branch = yield* encodeSegments(model, [{ text, trust: 'user' }, ...tail], prefix);
      // Each task is answered as if it were sent alone (D-26), so each must fit on its own.
      checkLength(prefix.length + branch.length, limit, READ_IN_WINDOWS);
      return branch;
    },
  };
}

/**
 * Placeholder for the text of the last user message and the task while the template renders. If the template merges
 * this message with an earlier one, the placeholder is at the end of the merged message.
 */
const TASK_MARK = '\uE002';
