const LONGEST_NAME = 64;

/** The path of a member or an item of what stands at `path`: `tasks[2].options[0]`. Odd names are quoted, long ones cut. */
export function pathTo(path: string, step: string | number): string {
  if (typeof step === 'number') return `${path}[${step}]`;
  if (/^[A-Za-z_$][\w$]*$/.test(step) && step.length <= LONGEST_NAME) return path === '' ? step : `${path}.${step}`;
  const name = step.length > LONGEST_NAME ? `${step.slice(0, LONGEST_NAME).toWellFormed()}…` : step;
  return `${path}[${JSON.stringify(name)}]`;
}
