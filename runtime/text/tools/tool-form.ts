import type { Tool, ToolUse } from '../../../lib/backend.ts';
import { type Tags, taggedObject } from '../../../lib/grammar/tagged-object.ts';
import type { TextModel } from '../text-model.ts';
import { ArgumentsReader } from './arguments-reader.ts';
import { callGrammar } from './call-grammar.ts';
import { textTriggers } from './call-trigger.ts';
import { TaggedReader } from './tagged-reader.ts';
import { ToolConstraint } from './tool-constraint.ts';
import { type CallReader, ToolOutput } from './tool-output.ts';

interface ToolFormOptions {
  use: ToolUse;
  stops: readonly string[];
  /** True if the prompt ends inside a reasoning block. */
  thinking: boolean;
  /** False: a forced call comes without reasoning. True by default. */
  mayReason?: boolean;
}

/**
 * Returns the grammar that constrains an answer with tools, and the reader that splits its tokens into text and calls.
 * The model's template must support tools (`ChatTemplate.tools`). Throws `unsupported_schema` if the template writes
 * arguments between tags and no grammar can write a tool's parameters so.
 */
export function toolForm(
  { template, tokenizer, vocabulary }: TextModel,
  { use, stops, thinking, mayReason = true }: ToolFormOptions,
): { constraint: ToolConstraint; output: ToolOutput } {
  const format = template.tools();
  if (!format) throw new Error('a chat with tools was not refused');
  const { reasoning, thinks } = template;
  const grammar = callGrammar({ format, use, tokenizer, reasoning });
  // If several tokens spell the opening mark, a forced call is written without reasoning.
  const open = thinks && mayReason ? (tokenizer.id(reasoning.open) ?? null) : null;
  const constraint = new ToolConstraint({ grammar, vocabulary, reasoning, thinking, open });
  return {
    constraint,
    output: new ToolOutput(vocabulary, {
      constraint,
      triggers: textTriggers(grammar),
      reader: readerOf(use.tools, format.tags),
      stops,
      thinking,
      format: reasoning,
    }),
  };
}

/** Returns a function that creates the reader of a call's arguments. */
function readerOf(tools: readonly Tool[], tags: Tags | undefined): (tool: Tool) => CallReader {
  if (!tags) return () => new ArgumentsReader();
  const objects = new Map(tools.map((tool, i) => [tool, taggedObject(tool.parameters, tags, `tools[${i}]`)]));
  return (tool) => {
    const object = objects.get(tool);
    if (!object) throw new Error('a call to a tool that was not sent');
    return new TaggedReader(object);
  };
}
