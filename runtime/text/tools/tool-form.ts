import type { ToolUse } from '../../../lib/backend.ts';
import type { TextModel } from '../text-model.ts';
import { callGrammar } from './call-grammar.ts';
import { ToolConstraint } from './tool-constraint.ts';
import { ToolOutput } from './tool-output.ts';

interface ToolFormOptions {
  use: ToolUse;
  stops: readonly string[];
  /** True if the prompt ends inside a reasoning block. */
  thinking: boolean;
}

/**
 * Returns the grammar that constrains an answer with tools, and the reader that splits its tokens into text and calls.
 * The model's template must support tools.
 */
export function toolForm(
  { template, tokenizer, vocabulary }: TextModel,
  { use, stops, thinking }: ToolFormOptions,
): { constraint: ToolConstraint; output: ToolOutput } {
  const format = template.tools();
  if (!format) throw new Error('a chat with tools was not refused');
  const { reasoning, thinks } = template;
  const grammar = callGrammar({ format, use, tokenizer, reasoning });
  // If several tokens spell the opening mark, a forced call is written without reasoning.
  const open = thinks ? (tokenizer.id(reasoning.open) ?? null) : null;
  const constraint = new ToolConstraint({ grammar, vocabulary, reasoning, thinking, open });
  return {
    constraint,
    output: new ToolOutput(vocabulary, { constraint, trigger: grammar.trigger, stops, thinking, format: reasoning }),
  };
}
