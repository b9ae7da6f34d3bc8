import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { createServerMetrics } from '../../adapters/node/metrics.ts';
import { createEngineMetrics } from '../../runtime/supervisor/metrics.ts';
import type { EngineStatus } from '../../runtime/supervisor/supervisor.ts';

/* Every metric and label that the alert rules, the dashboard and the autoscaling name is one that the server has. */

const CHART = fileURLToPath(new URL('../../deploy/helm', import.meta.url));
const ALERTS = `${CHART}/files/alerts.yaml`;
const read = (path: string) => readFile(`${CHART}/${path}`, 'utf8');

/** Labels that Prometheus adds when it scrapes. */
const SCRAPED = ['namespace', 'job', 'instance', 'service', 'le'];

/** Labels of each series of the server; its status is never read, because nothing is scraped. */
const { registry } = createEngineMetrics(() => [] as EngineStatus[]);
createServerMetrics(registry);
const SERIES = new Map(
  registry.getMetricsAsArray().flatMap((metric) => {
    const { name, type, labelNames = [] } = metric as unknown as { name: string; type: string; labelNames?: string[] };
    const suffixes = type === 'histogram' ? ['_bucket', '_sum', '_count'] : [''];
    return suffixes.map((suffix) => [`${name}${suffix}`, labelNames] as const);
  }),
);

/** Returns the series that an expression of PromQL names, with the labels that it selects by. */
function seriesOf(expr: string): { name: string; labels: string[] }[] {
  const found = expr
    .replaceAll(/\[[^\]]*\]( offset \w+)?/g, '')
    .replaceAll(/\b(by|without|on|ignoring) ?\([^)]*\)/g, '')
    .matchAll(/([a-zA-Z_:][\w:]*)(?!\w)(\s*\()?(\{[^}]*\})?/g);
  return [...found].flatMap(([, name = '', call, selector = '']) => {
    if (call !== undefined || ['sum', 'and', 'or', 'unless', 'avg', 'max', 'min'].includes(name)) return [];
    return [{ name, labels: [...selector.matchAll(/(\w+) *(?:=~|!~|!=|=)/g)].map(([, label = '']) => label) }];
  });
}

interface Panel {
  title: string;
  targets: { expr: string; legendFormat: string }[];
}
const dashboard: { panels: Panel[]; templating: { list: { definition?: string }[] } } = JSON.parse(
  await read('files/dashboard.json'),
);
const { groups }: { groups: { rules: { alert: string; expr: string; annotations: object }[] }[] } = parse(
  await read('files/alerts.yaml'),
);
const rules = groups.flatMap((group) => group.rules);
const scaling = await read('templates/autoscaling.yaml');

const EXPRESSIONS: [string, string][] = [
  ...rules.map(({ alert, expr }): [string, string] => [alert, expr]),
  ...dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }): [string, string] => [title, expr])),
  ...dashboard.templating.list.flatMap(({ definition }): [string, string][] => {
    const [, name] = /^label_values\((\w+), \w+\)$/.exec(definition ?? '') ?? [];
    return definition === undefined ? [] : [['a variable', name ?? 'not read']];
  }),
  ...[...scaling.matchAll(/metric: \{ name: (\w+)|query: (.*)/g)].map(([, metric, query = '']): [string, string] => [
    'autoscaling',
    metric ?? query.replaceAll(/\{\{[^}]*\}\}/g, 'x'),
  ]),
];

test.each(EXPRESSIONS)('%s: %s', (_, expr) => {
  const series = seriesOf(expr);
  expect(series).not.toEqual([]);
  for (const { name, labels } of series) {
    expect([...SERIES.keys()]).toContain(name);
    for (const label of labels) expect([...SCRAPED, ...SERIES.get(name)!]).toContain(label);
  }
});

test('a server that is stopping has no names of vLLM any more, so pickers choose another', async () => {
  const { registry } = createEngineMetrics(() => [] as EngineStatus[], undefined, 'vllm');
  const server = createServerMetrics(registry);
  expect(await registry.metrics()).toContain('vllm:num_requests_waiting');
  server.stopping();
  expect(await registry.metrics()).not.toContain('vllm:');
});

test('each kind of file has its expressions', () => {
  expect(rules.length).toBeGreaterThan(5);
  expect(EXPRESSIONS.filter(([of]) => of === 'autoscaling')).toHaveLength(2);
  expect(EXPRESSIONS.filter(([of]) => of === 'a variable')).toHaveLength(2);
});

test('legends and annotations name labels that the expression keeps', () => {
  const shown = [
    ...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr, legendFormat }) => [expr, legendFormat])),
    ...rules.map(({ expr, annotations }) => [expr, JSON.stringify(annotations)]),
  ];
  for (const [expr = '', text = ''] of shown) {
    for (const [, label = ''] of text.matchAll(/\{\{ ?(?:\$labels\.)?(\w+) ?\}\}/g)) {
      const kept = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(/, ?/));
      const own = seriesOf(expr).flatMap(({ name }) => [...SERIES.get(name)!, 'instance']);
      expect(/\bby \(/.test(expr) ? kept : own, `${label} of ${expr}`).toContain(label);
    }
  }
});

describe.runIf(spawnSync('promtool', ['--version']).status === 0)('promtool (of Debian: prometheus)', () => {
  const check = (file: string) => spawnSync('promtool', ['check', 'rules', file], { encoding: 'utf8' });

  test('accepts the rules', () => expect(check(ALERTS)).toMatchObject({ status: 0 }));

  test('accepts the expressions of the dashboard', async () => {
    const exprs = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
    const recorded = exprs.map((expr, i) => ({
      record: `panel:${i}`,
      expr: expr.replaceAll('$__rate_interval', '5m'),
    }));
    const file = join(mkdtempSync(join(tmpdir(), 'assay-rules-')), 'panels.yaml');
    await writeFile(file, JSON.stringify({ groups: [{ name: 'panels', rules: recorded }] }));
    expect(check(file)).toMatchObject({ status: 0 });
  });
});
