const LONGEST_NAME = 64;

/**
 * Returns the path of a member (`step` is its name) or item (its index) of the value at `path`, in the syntax of an
 * error's `param`: `tasks[2].options[0]`. Names that are not identifiers are quoted; names over 64 characters are cut.
 */
export function pathTo(path: string, step: string | number): string {
  if (typeof step === 'number') return `${path}[${step}]`;
  if (step.length <= LONGEST_NAME && /^[A-Za-z_$][\w$]*$/.test(step)) return path === '' ? step : `${path}.${step}`;
  const name = step.length > LONGEST_NAME ? `${step.slice(0, LONGEST_NAME).toWellFormed()}…` : step;
  return `${path}[${JSON.stringify(name)}]`;
}
