/** Length of the longest bar, in characters. */
const CELLS = 24;
/** Characters that fill 0 to 7 eighths of a character cell. */
const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/** Returns a line for each label, in aligned columns: the label, a bar of at most `CELLS` characters, a percentage. */
export function bars(probabilities: readonly (readonly [label: string, probability: number])[]): string[] {
  const width = Math.max(...probabilities.map(([label]) => label.length));
  return probabilities.map(([label, probability]) => {
    const percent = (100 * probability).toFixed(1).padStart(5);
    return `${label.padEnd(width)}  ${bar(probability).padEnd(CELLS)}  ${percent}%`;
  });
}

function bar(probability: number): string {
  const eighths = Math.round(probability * CELLS * 8);
  return '█'.repeat(Math.floor(eighths / 8)) + EIGHTHS[eighths % 8];
}
