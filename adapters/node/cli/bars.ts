/** Length of the longest bar, in characters. */
const CELLS = 24;
/** Block characters for a part of a character cell, in eighths. */
const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/** Returns lines with a bar and a percentage for each label, the labels aligned: `yes  ██████  25.0%`. */
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
