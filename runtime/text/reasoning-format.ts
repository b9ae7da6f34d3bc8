/** Describes how a family's models mark their reasoning before an answer. */
export interface ReasoningFormat {
  open: string;
  close: string;
  /** Tokens of these marks, which are declared special and yet are part of the text to split. */
  tokens: readonly string[];
  /** End of a prompt for an answer without reasoning. */
  none: string;
  /** Mark of an answer that has no reasoning before it. */
  answer?: string;
}

const THINK: ReasoningFormat = {
  open: '<think>',
  close: '</think>',
  tokens: ['<think>', '</think>'],
  none: '<think>\n\n</think>\n\n',
};

/** Magistral and Ministral 3. Source: their chat templates. */
const BRACKETS: ReasoningFormat = {
  open: '[THINK]',
  close: '[/THINK]',
  tokens: ['[THINK]', '[/THINK]'],
  none: '[THINK][/THINK]',
};

/** GPT-OSS: channels of messages. Source: OpenAI, "Harmony response format". */
const HARMONY: ReasoningFormat = {
  open: '<|channel|>analysis<|message|>',
  close: '<|end|><|start|>assistant<|channel|>final<|message|>',
  tokens: ['<|channel|>', '<|message|>', '<|end|>', '<|start|>'],
  none: '<|channel|>final<|message|>',
  answer: '<|channel|>final<|message|>',
};

/** Returns the format that a chat template shows. `thinks` is false if it shows none. */
export function reasoningFormat(template: string): { format: ReasoningFormat; thinks: boolean } {
  if (template.includes('<|channel|>')) return { format: HARMONY, thinks: true };
  if (template.includes('[/THINK]')) return { format: BRACKETS, thinks: true };
  return { format: THINK, thinks: template.includes('</think>') };
}
