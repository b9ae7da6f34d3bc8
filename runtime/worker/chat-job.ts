import { randomInt } from 'node:crypto';
import type { ChatRequest, ToolUse } from '../../lib/backend.ts';
import type { Constraint } from '../../lib/grammar/constraint.ts';
import { type LoopBounds, LoopDetector } from '../../lib/grammar/loop-detector.ts';
import { shapeConstraint } from '../../lib/tasks/task-grammar.ts';
import type { PromptLimits } from '../contracts/assay.ts';
import type { ChosenToken, JobResult } from '../engine/job-spec.ts';
import { ChatOutput, type OutputDelta } from '../text/output/chat-output.ts';
import { JsonOutput } from '../text/output/json-output.ts';
import { encodeChat } from '../text/prompt.ts';
import type { TextModel } from '../text/text-model.ts';
import { type JsonOrCallsOutput, jsonOrCalls } from '../text/tools/json-or-calls.ts';
import { ToolConstraint } from '../text/tools/tool-constraint.ts';
import { toolForm } from '../text/tools/tool-form.ts';
import type { ToolOutput } from '../text/tools/tool-output.ts';
import type { JobPlan } from './task-job.ts';

export interface ChatPlan {
  promptTokens: number;
  /**
   * Returns the engine job of the chat, which has one branch. `onDelta` receives text as soon as later tokens cannot
   * change it.
   */
  plan(onDelta: (delta: OutputDelta) => void): JobPlan;
  /** Returns the rest of the text, and the reason why the answer ended: which limit cut it, if one did. */
  end(result: JobResult): { delta: OutputDelta; reason: 'stop' | 'length' | 'repetition' };
}

/** Bounds beyond which free text counts as repeating itself endlessly; it then ends with `repetition` (M-22). */
const ANSWER_LOOP: LoopBounds = { tokens: 256, n: 16, distinct: 32 };

interface AnswerForm {
  constraint: Constraint | null;
  output: ChatOutput | JsonOutput | ToolOutput | JsonOrCallsOutput;
}

/** Tells whether the answer must be calls. Its format has no effect then. */
const isForced = (tools: ToolUse | undefined): boolean => tools !== undefined && tools.choice !== 'auto';

/**
 * Returns the grammar that constrains the answer to its requested format, and the reader that splits its tokens into
 * text, reasoning and tool calls.
 */
function answerForm(text: TextModel, { format, tools, stop }: ChatRequest, thinking: boolean): AnswerForm {
  const { vocabulary, template } = text;
  const stops = [...stop, ...template.stops];
  if (tools && format.type === 'json' && !isForced(tools)) {
    return jsonOrCalls(text, { use: tools, shape: format.shape, stops });
  }
  if (tools) return toolForm(text, { use: tools, stops, thinking });
  if (format.type === 'text') {
    return { constraint: null, output: new ChatOutput(vocabulary, { stops, thinking, format: template.reasoning }) };
  }
  const constraint = shapeConstraint(format.shape, vocabulary);
  return { constraint, output: new JsonOutput(vocabulary, constraint, stops) };
}

/**
 * Turns a chat request into an engine job. Throws `unsupported_modality` for media that the model does not read,
 * `input_too_long` for more than `maxPromptLen` tokens, `unsupported_parameter` if the chat template supports no tools
 * or refuses this conversation with tools, `unsupported_schema` if no grammar can enforce the format, or
 * a tool's parameters where the model writes them between tags, and `engine_failed` if the template fails otherwise.
 * Yields between parts, so that other work may run.
 */
export function* planChat(text: TextModel, request: ChatRequest, limits: PromptLimits): Generator<void, ChatPlan> {
  const { format, tools } = request;
  // A grammar that covers the whole answer leaves no room for reasoning.
  const constrained = format.type === 'json' && !isForced(tools);
  const encoding = {
    thinking: constrained ? false : request.reasoning?.enabled,
    effort: request.reasoning?.effort,
    continues: request.continues,
    tools: tools?.tools,
    limit: limits.maxPromptLen,
  };
  const { ids, thinking } = yield* encodeChat(text, request.messages, encoding);
  const { constraint, output } = answerForm(text, request, thinking);
  const left = limits.contextLength - ids.length;
  const maxTokens = Math.min(request.maxTokens ?? left, left);
  const loop = new LoopDetector(ANSWER_LOOP);
  return {
    promptTokens: ids.length,
    plan: (onDelta) => ({
      prefix: ids.slice(0, -1),
      branches: [
        {
          suffix: ids.slice(-1),
          constraint,
          sampling: {
            temperature: request.temperature ?? text.sampling.temperature,
            topP: request.topP ?? text.sampling.topP,
            seed: request.seed ?? randomInt(2 ** 32),
            presencePenalty: request.presencePenalty,
            frequencyPenalty: request.frequencyPenalty,
            topLogprobs: request.topLogprobs ?? null,
          },
          maxTokens,
          endTokens: text.vocabulary.end,
        },
      ],
      budget: maxTokens,
      onToken(_, token: ChosenToken) {
        onDelta(output.push(token));
        // A grammar bounds what it constrains, and a list of equal values may be what was asked for.
        if (!constraint || (constraint instanceof ToolConstraint && !constraint.inCall(token.token))) {
          loop.push(token.token);
        }
        return output.stopped || loop.looping ? 'stop' : undefined;
      },
      ...(request.topLogprobs === undefined || !('force' in output)
        ? {}
        : { onForced: (_: number, tokens: readonly number[]) => output.force(tokens, request.topLogprobs !== 0) }),
    }),
    end({ branches: [branch] }) {
      const repeats = loop.looping && !constraint?.complete;
      const cut = repeats || branch?.reason === 'length';
      const delta = output.end(cut);
      if (!cut || output.stopped) return { delta, reason: 'stop' };
      return { delta, reason: repeats ? 'repetition' : 'length' };
    },
  };
}
