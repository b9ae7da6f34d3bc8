import type { Coverage } from './evaluate.ts';
import { BINS, type Bin } from './fit.ts';

const SIDE = 260;
const MARGIN = 48;
/** Space between two diagrams, for the second one's axis. */
const GAP = 64;

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
    sideways(left - 34, 'share of right answers'),
    ...[0, 0.5, 1].map((share) => text(left + share * SIDE, bottom + 16, String(share))),
    ...[0, 0.5, 1].map((share) => text(left - 6, bottom - share * SIDE + 4, String(share), 'end')),
  ].join('\n');
}

/** Returns a label of a vertical axis. */
function sideways(x: number, words: string): string {
  const y = MARGIN + SIDE / 2;
  return `<text x="${x}" y="${y}" transform="rotate(-90 ${x} ${y})" text-anchor="middle" fill="#333">${words}</text>`;
}

/**
 * Returns an SVG image of the error of accepted answers by their share of all answers, with its confidence intervals.
 *
 * @param marked a coverage to mark, such as that of a chosen threshold
 */
export function coveragePlot(points: readonly Coverage[], marked?: number): string {
  const size = SIDE + 2 * MARGIN;
  const most = Math.max(0.05, ...points.map(({ error }) => error.value)) * 1.25;
  const x = (share: number) => (MARGIN + share * SIDE).toFixed(1);
  const y = (error: number) => (MARGIN + SIDE - (Math.min(error, most) / most) * SIDE).toFixed(1);
  const line = points.map(({ coverage, error }) => `${x(coverage)},${y(error.value)}`).join(' ');
  const upper = points.map(({ coverage, error }) => `${x(coverage)},${y(error.high)}`);
  const lower = points.map(({ coverage, error }) => `${x(coverage)},${y(error.low)}`).reverse();
  const text = (left: number | string, top: number, words: string, anchor = 'middle') =>
    `<text x="${left}" y="${top}" text-anchor="${anchor}" fill="#333">${words}</text>`;
  const dots = points.map(
    ({ threshold, accepted, coverage, error }) =>
      `<circle cx="${x(coverage)}" cy="${y(error.value)}" r="3" fill="#3366cc"><title>p >= ${threshold.toFixed(3)}: ` +
      `${accepted} answers, ${(100 * error.value).toFixed(1)}% wrong (95%: ${(100 * error.low).toFixed(1)} to ${(100 * error.high).toFixed(1)})</title></circle>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${size}" height="${size}" viewBox="0 0 ${size} ${size}"`,
    '  font-family="sans-serif" font-size="12">',
    `<rect width="${size}" height="${size}" fill="white"/>`,
    `<rect x="${MARGIN}" y="${MARGIN}" width="${SIDE}" height="${SIDE}" fill="none" stroke="#999"/>`,
    `<polygon points="${[...upper, ...lower].join(' ')}" fill="#3366cc" opacity="0.15"/>`,
    `<polyline points="${line}" fill="none" stroke="#3366cc" stroke-width="2"/>`,
    ...dots,
    ...(marked === undefined
      ? []
      : [`<line x1="${x(marked)}" y1="${MARGIN}" x2="${x(marked)}" y2="${MARGIN + SIDE}" stroke="#c00"/>`]),
    text(MARGIN + SIDE / 2, MARGIN - 14, 'error by coverage'),
    text(MARGIN + SIDE / 2, MARGIN + SIDE + 34, 'share of answers accepted'),
    sideways(MARGIN - 36, 'share of wrong answers among them'),
    ...[0, 0.5, 1].map((share) => text(x(share), MARGIN + SIDE + 16, `${100 * share}%`)),
    ...[0, most / 2, most].map((error) =>
      text(MARGIN - 6, Number(y(error)) + 4, `${(100 * error).toFixed(0)}%`, 'end'),
    ),
    '</svg>',
    '',
  ].join('\n');
}

/** Returns a text with the characters that have a meaning in HTML and SVG escaped. */
export function escaped(text: string): string {
  return text.replace(/[<>&"]/g, (char) => `&#${char.charCodeAt(0)};`);
}
