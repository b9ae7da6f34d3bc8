/** Describes how the models of a family mark the reasoning before an answer. */
export interface ReasoningFormat {
  /** Mark before the reasoning. */
  open: string;
  /** Mark after the reasoning. */
  close: string;
  /**
   * Special tokens in `open` and `close`. Unlike other special tokens, they are kept in the model's text, in which the
   * splitter finds them.
   */
  tokens: readonly string[];
  /** Text at the end of a prompt that makes the model answer without reasoning. */
  none: string;
  /** True if the model writes messages with headers to channels, of which one is for reasoning. */
  channels?: true;
}

const THINK: ReasoningFormat = {
  open: '<think>',
  close: '</think>',
  tokens: ['<think>', '</think>'],
  none: '<think>\n\n</think>\n\n',
};

/** Format of Magistral and Ministral 3. Source: their chat templates. */
const BRACKETS: ReasoningFormat = {
  open: '[THINK]',
  close: '[/THINK]',
  tokens: ['[THINK]', '[/THINK]'],
  none: '[THINK][/THINK]',
};

/**
 * Format of Command R7B and its successors, which also plan tool calls in their reasoning. Source: their chat
 * templates.
 */
const COMMAND: ReasoningFormat = {
  open: '<|START_THINKING|>',
  close: '<|END_THINKING|>',
  tokens: ['<|START_THINKING|>', '<|END_THINKING|>'],
  none: '<|START_THINKING|><|END_THINKING|>',
};

/** Format of GPT-OSS, which writes messages to channels. Source: OpenAI, "Harmony response format". */
const HARMONY: ReasoningFormat = {
  open: '<|channel|>analysis<|message|>',
  close: '<|end|><|start|>assistant<|channel|>final<|message|>',
  tokens: ['<|channel|>', '<|message|>', '<|end|>', '<|start|>'],
  none: '<|channel|>final<|message|>',
  channels: true,
};

/**
 * Returns the reasoning format that a chat template uses. If it uses none, `thinks` is false and the format is that of
 * `<think>`.
 */
export function reasoningFormat(template: string): { format: ReasoningFormat; thinks: boolean } {
  if (template.includes('<|channel|>')) return { format: HARMONY, thinks: true };
  if (template.includes('[/THINK]')) return { format: BRACKETS, thinks: true };
  if (template.includes('<|END_THINKING|>')) return { format: COMMAND, thinks: true };
  return { format: THINK, thinks: template.includes('</think>') };
}
