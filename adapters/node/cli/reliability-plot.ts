import { BINS, type Bin } from '../../../lib/calibration/fit.ts';

const SIDE = 260;
const MARGIN = 48;
const GAP = 40;

/** Describes one reliability diagram: the share of right answers in each bin of the model's confidence. */
export interface ReliabilityDiagram {
  title: string;
  bins: readonly Bin[];
}

/**
 * Returns an SVG image of reliability diagrams, side by side. Where a bar ends at the diagonal, the model is well
 * calibrated; where it ends below, the model is overconfident.
 */
export function reliabilityPlot(diagrams: readonly ReliabilityDiagram[]): string {
  const width = 2 * MARGIN + diagrams.length * SIDE + (diagrams.length - 1) * GAP;
  const height = SIDE + 2 * MARGIN;
  const drawn = diagrams.map((diagram, i) => draw(diagram, MARGIN + i * (SIDE + GAP)));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`,
    '  font-family="sans-serif" font-size="12">',
    `<rect width="${width}" height="${height}" fill="white"/>`,
    ...drawn,
    '</svg>',
    '',
  ].join('\n');
}

function draw({ title, bins }: ReliabilityDiagram, left: number): string {
  const most = Math.max(1, ...bins.map(({ count }) => count));
  const step = SIDE / BINS;
  const bars = bins.map(({ count, accuracy }, bin) => {
    if (count === 0) return '';
    const tall = accuracy * SIDE;
    // Bars that stand for fewer answers are fainter.
    const opacity = (0.25 + 0.75 * Math.sqrt(count / most)).toFixed(2);
    const [x, y] = [left + bin * step + 1, MARGIN + SIDE - tall].map((value) => value.toFixed(1));
    const about = `${count} answers, ${(100 * accuracy).toFixed(0)}% right`;
    return (
      `<rect x="${x}" y="${y}" width="${(step - 2).toFixed(1)}" height="${tall.toFixed(1)}" fill="#3366cc"` +
      ` opacity="${opacity}"><title>${about}</title></rect>`
    );
  });
  const [right, bottom] = [left + SIDE, MARGIN + SIDE];
  const text = (x: number, y: number, words: string, anchor = 'middle') =>
    `<text x="${x}" y="${y}" text-anchor="${anchor}" fill="#333">${words}</text>`;
  return [
    `<rect x="${left}" y="${MARGIN}" width="${SIDE}" height="${SIDE}" fill="none" stroke="#999"/>`,
    ...bars.filter(Boolean),
    `<line x1="${left}" y1="${bottom}" x2="${right}" y2="${MARGIN}" stroke="#c00" stroke-dasharray="4 3"/>`,
    text(left + SIDE / 2, MARGIN - 14, escaped(title)),
    text(left + SIDE / 2, bottom + 34, 'probability of the answer'),
    ...[0, 0.5, 1].map((share) => text(left + share * SIDE, bottom + 16, String(share))),
    ...[0, 0.5, 1].map((share) => text(left - 6, bottom - share * SIDE + 4, String(share), 'end')),
  ].join('\n');
}

function escaped(text: string): string {
  return text.replace(/[<>&"]/g, (char) => `&#${char.charCodeAt(0)};`);
}
