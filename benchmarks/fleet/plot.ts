export interface Series {
  name: string;
  points: readonly (readonly [x: number, y: number])[];
}

export interface Panel {
  title: string;
  series: readonly Series[];
  scale: 'linear' | 'log';
  min?: number;
  max: number;
}

const WIDTH = 420;
const HEIGHT = 280;
const MARGIN = { left: 52, right: 26, top: 44, bottom: 44 };
/** Told apart also without colour vision (Okabe & Ito 2008), and by their dashes. */
const STYLES = [
  { color: '#999999', dash: '2 3' },
  { color: '#e69f00', dash: '6 3' },
  { color: '#56b4e9', dash: '8 3 2 3' },
  { color: '#d55e00', dash: '' },
];

/** Panels side by side, over the same x axis (requests a second), with one legend. */
export function plot(title: string, panels: readonly Panel[]): string {
  const width = panels.length * WIDTH;
  const height = HEIGHT + 64;
  const legend = panels[0]!.series.map(({ name }, i) => {
    const x = 40 + i * 200;
    return `${line(i, `M${x} ${height - 18}h36`)}<text x="${x + 44}" y="${height - 14}">${name}</text>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="12">`,
    `<title>${title}</title>`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    `<text x="${width / 2}" y="20" text-anchor="middle" font-size="14" font-weight="600">${title}</text>`,
    ...panels.map((panel, i) => `<g transform="translate(${i * WIDTH} 12)">${drawPanel(panel)}</g>`),
    ...legend,
    '</svg>\n',
  ].join('\n');
}

function drawPanel(panel: Panel): string {
  const right = WIDTH - MARGIN.right;
  const bottom = HEIGHT - MARGIN.bottom;
  const most = Math.max(...panel.series.flatMap(({ points }) => points.map(([x]) => x)));
  const x = (value: number) => round(MARGIN.left + ((right - MARGIN.left) * value) / most);
  const y = (value: number) => round(bottom - (bottom - MARGIN.top) * share(value, panel));
  const grid = ticks(panel).map(
    (tick) =>
      `<path d="M${MARGIN.left} ${y(tick)}H${right}" stroke="#ddd"/>` +
      `<text x="${MARGIN.left - 6}" y="${y(tick) + 4}" text-anchor="end">${tick}</text>`,
  );
  const axis = [0, most / 4, most / 2, (3 * most) / 4, most].map(
    (tick) => `<text x="${x(tick)}" y="${bottom + 18}" text-anchor="middle">${tick.toLocaleString('en')}</text>`,
  );
  const lines = panel.series.map(({ points }, i) =>
    line(i, points.map(([px, py], j) => `${j === 0 ? 'M' : 'L'}${x(px)} ${y(py)}`).join('')),
  );
  return [
    `<text x="${MARGIN.left}" y="${MARGIN.top - 14}" font-weight="600">${panel.title}</text>`,
    ...grid,
    ...axis,
    `<text x="${(MARGIN.left + right) / 2}" y="${bottom + 36}" text-anchor="middle">requests a second, whole fleet</text>`,
    ...lines,
  ].join('\n');
}

/** Where a value stands between the panel's ends, 0 to 1. */
function share(value: number, { scale, min = 0, max }: Panel): number {
  const kept = Math.min(max, Math.max(min, value));
  return scale === 'linear' ? (kept - min) / (max - min) : Math.log(kept / min) / Math.log(max / min);
}

function ticks({ scale, min = 0, max }: Panel): number[] {
  if (scale === 'linear') return [0, 1, 2, 3, 4].map((i) => min + (i * (max - min)) / 4);
  const decades = Math.round(Math.log10(max / min));
  return Array.from({ length: decades + 1 }, (_, i) => Number((min * 10 ** i).toPrecision(1)));
}

function line(style: number, path: string): string {
  const { color, dash } = STYLES[style % STYLES.length]!;
  return `<path d="${path}" fill="none" stroke="${color}" stroke-width="2" stroke-dasharray="${dash}"/>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
