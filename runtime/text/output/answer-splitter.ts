import { ChannelSplitter } from './channel-splitter.ts';
import type { ReasoningFormat } from './reasoning-format.ts';
import { ThinkSplitter } from './think-splitter.ts';

/** Splits a model's streamed text into reasoning and answer. */
export type AnswerSplitter = ThinkSplitter | ChannelSplitter;

/**
 * Creates the splitter for a reasoning format.
 *
 * @param inside true if the prompt has already opened the reasoning
 */
export function answerSplitter(inside: boolean, format: ReasoningFormat): AnswerSplitter {
  return format.channels ? new ChannelSplitter(inside) : new ThinkSplitter(inside, format);
}
