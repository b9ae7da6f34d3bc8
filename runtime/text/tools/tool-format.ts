import type { Tags } from '../../../lib/grammar/tagged-object.ts';

/** Describes how a chat template writes tool calls, as found by rendering. */
export interface ToolFormat {
  /** Text that begins a call, from the start of the answer to the name of the tool. */
  head: string;
  /** Text between the tool's name and the arguments, which are the JSON text of an object unless there are tags. */
  between: string;
  /** Tags between which the template writes each argument; absent if it writes JSON. */
  tags?: Tags;
  /**
   * Text after the arguments if the answer has a single call: the end of the call and of the answer, and all that the
   * template writes after them.
   */
  rest: string;
  /** Text from the end of a call's arguments to the name of the next call; null if an answer can make only one call. */
  separator: string | null;
  /** True if an answer may contain text before its calls. */
  textBefore: boolean;
  /** True if the template does not write the calls of earlier messages. The calls are then passed to it as content. */
  asContent?: true;
}

/**
 * Formats of calls that a template asks the model for in a sentence, but does not write itself: each with that
 * sentence. Source for Granite 3.3: its chat template, and the parsers of llama.cpp and vLLM for its calls.
 */
const DECLARED: readonly [request: string, format: ToolFormat][] = [
  [
    'respond only with <|tool_call|> followed by a JSON list of tools used',
    {
      head: '<|tool_call|>[{"name": "',
      between: '", "arguments": ',
      rest: '}]',
      separator: '}, {"name": "',
      textBefore: false,
      asContent: true,
    },
  ],
];

/** Returns the format of calls that a prompt with tools asks for; null if it asks for none that is known. */
export function declaredFormat(prompt: string): ToolFormat | null {
  return DECLARED.find(([request]) => prompt.includes(request))?.[1] ?? null;
}
