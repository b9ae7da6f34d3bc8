import { randomInt } from 'node:crypto';
import type { ChatRequest } from '../../lib/backend.ts';
import { shapeConstraint } from '../../lib/decision/task-grammar.ts';
import { type LoopBounds, LoopDetector } from '../../lib/loop-detector.ts';
import type { ChosenToken, JobResult } from '../engine/job.ts';
import { type ChatDelta, ChatOutput } from '../text/chat-output.ts';
import { JsonOutput } from '../text/json-output.ts';
import { encodeChat } from '../text/prompt.ts';
import type { TextModel } from '../text/text-model.ts';
import type { JobPlan } from './task-job.ts';

export interface ChatLimits {
  maxPromptLen: number;
  contextLength: number;
}

export interface ChatPlan {
  promptTokens: number;
  /** A job of one branch. `onDelta` gets text as it becomes certain. */
  plan(onDelta: (delta: ChatDelta) => void): JobPlan;
  /** The text that is left, and why the answer ended. */
  end(result: JobResult): { delta: ChatDelta; reason: 'stop' | 'length' };
}

/** When an answer only repeats itself; it ends then as if its tokens were used up. */
const ANSWER_LOOP: LoopBounds = { tokens: 256, distinct: 32 };

/** Turns a chat into a job. Throws what is wrong with the input (`unsupported_modality`, `input_too_long`, `unsupported_schema`). */
export function planChat(text: TextModel, request: ChatRequest, limits: ChatLimits): ChatPlan {
  const { format } = request;
  // An answer that a grammar bounds has no room for reasoning.
  const bounded = format.type === 'json' ? ({ thinking: false } as const) : {};
  const { ids, thinking } = encodeChat(text, request.messages, { ...bounded, limit: limits.maxPromptLen });
  const constraint = format.type === 'json' ? shapeConstraint(format.shape, text.vocabulary) : null;
  const stops = [...request.stop, ...text.template.stops];
  const output = constraint
    ? new JsonOutput(text.vocabulary, constraint, stops)
    : new ChatOutput(text.vocabulary, { stops, thinking });
  const room = limits.contextLength - ids.length;
  const maxTokens = Math.min(request.maxTokens ?? room, room);
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
        loop.push(token.token);
        return output.stopped || loop.looping ? 'stop' : undefined;
      },
    }),
    end({ branches: [branch] }) {
      const cut = branch!.reason === 'length' || (loop.looping && !constraint?.complete);
      const delta = output.end(cut);
      return { delta, reason: cut && !output.stopped ? 'length' : 'stop' };
    },
  };
}
