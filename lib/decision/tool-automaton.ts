import type { Tool } from '../backend.ts';
import { Automaton, type FramedValue } from '../grammar/automaton/automaton.ts';
import { compileSchema } from '../grammar/resolve/compile.ts';
import { recentAutomaton } from './task-grammar.ts';

/** Describes a text in a call: fixed texts, a tool's name and its arguments, in this order; each may be missing. */
export interface CallText {
  before: string;
  name: boolean;
  between: string;
  arguments: boolean;
  after: string;
}

/** Returns the automaton of a text in a call of one of the tools: the name decides which arguments follow. */
export function toolAutomaton(text: CallText, tools: readonly Tool[]): Automaton {
  const fixed = !text.name && !text.arguments;
  const alternatives = (): FramedValue[] =>
    fixed ? [{ before: text.before, after: '' }] : tools.map((tool) => framed(text, tool));
  const key = fixed ? [text] : [text, tools.map(({ name, parameters }) => [name, parameters])];
  return recentAutomaton(JSON.stringify(['call', ...key]), () => new Automaton(alternatives()));
}

/** Returns the text before the arguments of a tool; the whole text if it has none. */
export function textBeforeArguments({ before, name, between }: CallText, tool: Tool): string {
  return before + (name ? tool.name : '') + between;
}

/**
 * Returns the tool that a text in a call names; undefined while its name is not whole.
 *
 * @param ended true when nothing more is added to the text. A name that ends it may begin a longer one until then.
 */
export function namedTool(text: CallText, written: string, tools: readonly Tool[], ended: boolean): Tool | undefined {
  return tools.find((tool) => {
    const before = textBeforeArguments(text, tool);
    // Arguments are an object.
    if (text.arguments) return written.startsWith(`${before}{`);
    return text.between === '' ? ended && written === before : written.startsWith(before);
  });
}

function framed(text: CallText, tool: Tool): FramedValue {
  const before = textBeforeArguments(text, tool);
  if (!text.arguments) return { before, after: '' };
  return { before, value: compileSchema(tool.parameters, { path: 'parameters' }), after: text.after };
}
