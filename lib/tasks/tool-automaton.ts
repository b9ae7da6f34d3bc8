import type { Tool } from '../backend.ts';
import { Automaton, type FramedValue } from '../grammar/automaton/automaton.ts';
import { compileSchema } from '../grammar/resolve/compile.ts';
import { type Tags, taggedObject } from '../grammar/tagged-object.ts';
import { recentAutomaton } from './task-grammar.ts';

/**
 * Describes the text of a tool call: `before`, the tool's name, `between`, the arguments and `after`, in this order.
 * `name` and `arguments` tell whether these two parts are present; the fixed texts may be empty.
 */
export interface CallText {
  before: string;
  name: boolean;
  between: string;
  arguments: boolean;
  after: string;
  /** Tags around each argument; absent if the arguments are JSON. */
  tags?: Tags;
}

/**
 * Returns the automaton that reads the text of a call to one of the tools. The tool's name determines which arguments
 * follow. For a text without name and arguments, the automaton reads only `before`. Automata are cached
 * (`recentAutomaton`).
 *
 * @throws AssayError `unsupported_schema` for parameters that cannot be enforced in this text
 */
export function toolAutomaton(text: CallText, tools: readonly Tool[]): Automaton {
  const fixed = !text.name && !text.arguments;
  const alternatives = (): FramedValue[] =>
    fixed ? [{ before: text.before, after: '' }] : tools.map((tool) => framed(text, tool));
  const key = fixed ? [text] : [text, tools.map(({ name, parameters }) => [name, parameters])];
  return recentAutomaton(JSON.stringify(['call', ...key]), () => new Automaton(alternatives()));
}

/** Returns the text of a call to `tool` before its arguments. */
export function textBeforeArguments({ before, name, between }: CallText, tool: Tool): string {
  return before + (name ? tool.name : '') + between;
}

/**
 * Returns the tool that the text of a call names; undefined while the name is incomplete.
 *
 * @param written the text of the call so far
 * @param ended true if no more text follows. Before that, a name at the end of the text may still be the beginning of a
 *   longer name.
 */
export function namedTool(text: CallText, written: string, tools: readonly Tool[], ended: boolean): Tool | undefined {
  return tools.find((tool) => {
    const before = textBeforeArguments(text, tool);
    // Arguments in JSON are an object, so they begin with a brace.
    if (text.arguments) return written.startsWith(text.tags ? before : `${before}{`);
    return text.between === '' ? ended && written === before : written.startsWith(before);
  });
}

function framed(text: CallText, tool: Tool): FramedValue {
  const before = textBeforeArguments(text, tool);
  if (!text.arguments) return { before, after: '' };
  const { tags, after } = text;
  const value = tags
    ? taggedObject(tool.parameters, tags, 'parameters')
    : compileSchema(tool.parameters, { path: 'parameters' });
  return { before, value, after };
}
