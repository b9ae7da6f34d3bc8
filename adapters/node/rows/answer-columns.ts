import { membersOf } from '../../../lib/json/members.ts';

/* Writes the answers of a row as columns. */

/** The kinds of questions that a run may ask of each row, by the member of the request that has them. */
export const ASKED = {
  tasks: { path: '/v1/tasks', state: 'context', answers: 'results' },
  questions: { path: '/v1/systemone', state: 'state', answers: 'answers' },
  fields: { path: '/v1/extractions', state: 'state', answers: 'answers' },
} as const;
export type AskedKind = keyof typeof ASKED;

/** Member of an output row that is not answered; its value has the members `code`, `message` and, often, `param`. */
export const ERROR_COLUMN = 'error';
/** Member of an output row with the value `length` if an answer of tasks was cut. */
export const CUT_COLUMN = 'finish_reason';

/** Ends of the names of columns that `flatColumns` adds to the name of a question with a single value. */
const SUFFIXES = ['p', 'p_null', 'confidence', 'p10', 'p90', 'reason', 'abstained', 'cut'];

/** Describes a task, question or field that each row is asked about. */
export interface AskedColumn {
  name: string;
  type: string;
}

/** Questions of these types have answers with members, which become columns. */
const OPEN = new Set(['extract', 'object']);

/**
 * Returns the columns of an answer for a table, with their JSON texts: the value has the name of the question, and
 * what is known about it has names such as `total_confidence`. Members of objects become columns such as `order_total`;
 * deeper values stay JSON.
 */
export function flatColumns(
  kind: AskedKind,
  { name, type }: AskedColumn,
  json: string,
): [name: string, json: string][] {
  const answer = membersOf(json);
  const also = (member: string, suffix: string = member): [string, string][] => {
    const value = answer.get(member);
    return value === undefined ? [] : [[`${name}_${suffix}`, value]];
  };
  const value = (member = 'value'): [string, string] => [name, answer.get(member) ?? 'null'];
  const inside = (object: string | undefined): [string, string][] =>
    object === undefined || object === 'null'
      ? []
      : [...membersOf(object)].map(([member, value]) => [`${name}_${member}`, value]);
  const abstained = also('x_abstained', 'abstained');
  if (kind === 'tasks') return type === 'extract' ? inside(json) : [value(), ...also('reason'), ...also('abstained')];
  switch (type) {
    case 'noul':
      return [value('noul'), ...abstained];
    case 'choice': {
      const p = membersOf(answer.get('probabilities') ?? '{}').get(JSON.parse(answer.get('choice') ?? '""'));
      const likely: [string, string][] = p === undefined ? [] : [[`${name}_p`, p]];
      return [value('choice'), ...likely, ...also('confidence'), ...abstained];
    }
    case 'score':
      return [value('score'), ...also('confidence'), ...abstained];
    case 'extract':
      return inside(answer.get('data'));
    case 'object':
      return [...inside(answer.get('value')), ...also('confidence')];
    default:
      return [
        value(),
        ...['p_null', 'confidence', 'p10', 'p90'].flatMap((member) => also(member)),
        ...also('x_cut', 'cut'),
      ];
  }
}

/**
 * Returns the first column of the input whose name an answer may need; undefined if there is none. In a table, a
 * question with members takes all names that begin with its own.
 */
export function takenColumn(
  columns: Iterable<string>,
  asked: readonly AskedColumn[],
  { flat, kind }: { flat: boolean; kind: AskedKind },
): string | undefined {
  const own = new Set([ERROR_COLUMN, ...(kind === 'tasks' ? [CUT_COLUMN] : []), ...asked.map(({ name }) => name)]);
  const needs =
    (column: string) =>
    ({ name, type }: AskedColumn) =>
      column.startsWith(`${name}_`) && (OPEN.has(type) || SUFFIXES.includes(column.slice(name.length + 1)));
  return [...columns].find((column) => own.has(column) || (flat && asked.some(needs(column))));
}
