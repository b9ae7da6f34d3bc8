import { at } from '../lib/at.ts';
export interface Series {
  name: string;
  points: readonly (readonly [x: number, y: number])[];
}

export interface Panel {
  title: string;
  series: readonly Series[];
  /** Label and ticks of the x axis. The ticks of a logarithmic axis must be above 0. */
  x: { label: string; scale: 'linear' | 'log'; ticks: readonly number[] };
  /** Scale of the y axis. */
  scale: 'linear' | 'log';
  min?: number;
  max: number;
}

const WIDTH = 420;
const HEIGHT = 280;
const MARGIN = { left: 52, right: 26, top: 44, bottom: 44 };
/** Styles of the series: colours that can be distinguished without colour vision (Okabe & Ito 2008), and dashes. */
const STYLES = [
  { color: '#999999', dash: '2 3' },
  { color: '#e69f00', dash: '6 3' },
  { color: '#56b4e9', dash: '8 3 2 3' },
  { color: '#d55e00', dash: '' },
  { color: '#009e73', dash: '10 4' },
  { color: '#0072b2', dash: '4 2' },
  { color: '#cc79a7', dash: '2 2 6 2' },
  { color: '#000000', dash: '12 3 3 3' },
];
const LEGEND = { width: 280, line: 20 };

/** Returns an SVG with the panels side by side and one legend, which names the series of the first panel. */
export function plot(title: string, panels: readonly Panel[]): string {
  const width = panels.length * WIDTH;
  const names = at(panels, 0).series.map(({ name }) => name);
  const columns = Math.max(1, Math.floor((width - 40) / LEGEND.width));
  const height = HEIGHT + 34 + Math.ceil(names.length / columns) * LEGEND.line;
  const legend = names.map((name, i) => {
    const x = 40 + (i % columns) * LEGEND.width;
    const y = HEIGHT + 34 + Math.floor(i / columns) * LEGEND.line;
    return `${line(i, `M${x} ${y}h36`)}<text x="${x + 44}" y="${y + 4}">${escaped(name)}</text>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="12">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    `<text x="${width / 2}" y="20" text-anchor="middle" font-size="14" font-weight="600">${escaped(title)}</text>`,
    ...panels.map((panel, i) => `<g transform="translate(${i * WIDTH} 12)">${drawPanel(panel)}</g>`),
    ...legend,
    '</svg>\n',
  ].join('\n');
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}

function drawPanel(panel: Panel): string {
  const right = WIDTH - MARGIN.right;
  const bottom = HEIGHT - MARGIN.bottom;
  const ends = { scale: panel.x.scale, min: at(panel.x.ticks, 0), max: panel.x.ticks.at(-1)! };
  const x = (value: number) => round(MARGIN.left + (right - MARGIN.left) * share(value, ends));
  const y = (value: number) => round(bottom - (bottom - MARGIN.top) * share(value, panel));
  const grid = ticks(panel).map(
    (tick) =>
      `<path d="M${MARGIN.left} ${y(tick)}H${right}" stroke="#ddd"/>` +
      `<text x="${MARGIN.left - 6}" y="${y(tick) + 4}" text-anchor="end">${tick}</text>`,
  );
  const axis = panel.x.ticks.map(
    (tick) => `<text x="${x(tick)}" y="${bottom + 18}" text-anchor="middle">${tick.toLocaleString('en')}</text>`,
  );
  const lines = panel.series.map(({ points }, i) =>
    line(i, points.map(([px, py], j) => `${j === 0 ? 'M' : 'L'}${x(px)} ${y(py)}`).join('')),
  );
  return [
    `<text x="${MARGIN.left}" y="${MARGIN.top - 14}" font-weight="600">${escaped(panel.title)}</text>`,
    ...grid,
    ...axis,
    `<text x="${(MARGIN.left + right) / 2}" y="${bottom + 36}" text-anchor="middle">${panel.x.label}</text>`,
    ...lines,
  ].join('\n');
}

/** Returns the position of a value on an axis, from 0 (its minimum) to 1 (its maximum). Clamps values outside. */
function share(value: number, { scale, min = 0, max }: Pick<Panel, 'scale' | 'min' | 'max'>): number {
  const kept = Math.min(max, Math.max(min, value));
  return scale === 'linear' ? (kept - min) / (max - min) : Math.log(kept / min) / Math.log(max / min);
}

function ticks({ scale, min = 0, max }: Panel): number[] {
  if (scale === 'linear') return [0, 1, 2, 3, 4].map((i) => min + (i * (max - min)) / 4);
  const decades = Math.round(Math.log10(max / min));
  return Array.from({ length: decades + 1 }, (_, i) => Number((min * 10 ** i).toPrecision(1)));
}

function line(style: number, path: string): string {
  const { color, dash } = at(STYLES, style % STYLES.length);
  return `<path d="${path}" fill="none" stroke="${color}" stroke-width="2" stroke-dasharray="${dash}"/>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
