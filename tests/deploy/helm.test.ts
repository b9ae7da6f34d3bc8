import { spawnSync } from 'node:child_process';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { addServe } from '../../adapters/node/cli/commands/serve.ts';
import { ROUTES } from '../../handlers/routes.ts';
import { fixture } from '../fixture.ts';

/*
 * Renders the Helm chart with helm and checks the result with kubeconform against schemas of Kubernetes, KEDA and the
 * Gateway API (tests/fixtures/kubernetes.txtar). .ci/run installs both tools.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CHART = join(ROOT, 'deploy/helm');
const SCHEMAS = join(fixture('kubernetes'), '{{.ResourceKind}}.json');
const env = { ...process.env, PATH: `${process.env.PATH}:${process.env.GOBIN ?? join(homedir(), 'go/bin')}` };
const tool = (name: string, args: string[], input = '') => spawnSync(name, args, { env, input, encoding: 'utf8' });
const installed = tool('helm', ['version']).status === 0 && tool('kubeconform', ['-v']).status === 0;
if (!installed) console.log('NO HELM OR KUBECONFORM: the tests of the Helm chart are skipped');

/** The version of the schemas; a helm that `go install` built assumes 1.20. */
const CLUSTER = ['--kube-version', '1.34.0'];
const SECRET = { 'auth.existingSecret': 'assay-key' };
const ALL = {
  ...SECRET,
  'autoscaling.kind': 'keda',
  'monitoring.serviceMonitor.enabled': true,
  'monitoring.rules.enabled': true,
  'monitoring.dashboard.enabled': true,
  'inferencePool.enabled': true,
  'inferencePool.picker.name': 'picker',
  'httpRoute.enabled': true,
  'httpRoute.parentRefs': [{ name: 'gateway' }],
  'httpRoute.hostnames': ['assay.example.com'],
  'httpRoute.backend': 'InferencePool',
  'model.id': 'onnx-community/Qwen3-0.6B-ONNX',
  'model.hubSecret': 'hub',
  args: ['--chat-max-tokens=256', '--alias', 'gpt-4o-mini'],
  env: [{ name: 'HF_ENDPOINT', value: 'https://hub.example.com' }],
  podLabels: { 'llm-d.ai/engine-type': 'assay' },
  podAnnotations: { team: 'decisions' },
  imagePullSecrets: [{ name: 'registry' }],
  'image.tag': '1.2.3',
  nodeSelector: { pool: 'cpu' },
  tolerations: [{ key: 'cpu', operator: 'Exists' }],
  affinity: { nodeAffinity: {} },
  topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }],
  runtimeClassName: 'gvisor',
  priorityClassName: 'high',
  'model.volume.storageClass': 'fast',
  'networkPolicy.from': [{ namespaceSelector: { matchLabels: { team: 'gateway' } } }],
  'networkPolicy.metricsFrom': [{ namespaceSelector: { matchLabels: { team: 'monitoring' } } }],
};
type Values = Record<string, unknown>;
const flags = (values: Values) =>
  Object.entries(values).flatMap(([path, value]) => ['--set-json', `${path}=${JSON.stringify(value)}`]);
const render = (values: Values) =>
  tool('helm', ['template', 'box', CHART, '--namespace', 'ai', ...CLUSTER, ...flags(values)]);

// biome-ignore lint/suspicious/noExplicitAny: the documents are YAML of many kinds
type Document = any;
const documents = (values: Values): Document[] => {
  const { stdout, stderr } = render(values);
  expect(stderr).toBe('');
  return parseAllDocuments(stdout).map((document) => document.toJS());
};
const named = (all: Document[], kind: string): Document => all.find((document) => document.kind === kind);

const ALWAYS = ['NetworkPolicy', 'PodDisruptionBudget', 'Service', 'Service', 'StatefulSet'];
const RENDERS: [string, Values, string[]][] = [
  ['only a key', SECRET, ALWAYS],
  ['no policy and no volume', { ...SECRET, 'networkPolicy.enabled': false, 'model.volume.size': '' }, ALWAYS.slice(1)],
  ['no way out', { ...SECRET, 'networkPolicy.egress': [] }, ALWAYS],
  ['a HorizontalPodAutoscaler', { ...SECRET, 'autoscaling.kind': 'hpa' }, [...ALWAYS, 'HorizontalPodAutoscaler']],
  [
    'a route to the Service',
    { ...SECRET, 'httpRoute.enabled': true, 'httpRoute.parentRefs': [{ name: 'gateway' }] },
    [...ALWAYS, 'HTTPRoute'],
  ],
  [
    'everything',
    ALL,
    [...ALWAYS, 'ConfigMap', 'HTTPRoute', 'InferencePool', 'PrometheusRule', 'ScaledObject', 'ServiceMonitor'],
  ],
];

describe.runIf(installed)('the Helm chart', () => {
  test.each(RENDERS)('is valid with %s', (_, values, kinds) => {
    const { stdout, stderr, status } = render(values);
    expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
    const found = parseAllDocuments(stdout).map((document) => document.toJS().kind);
    expect(found.sort()).toEqual([...kinds].sort());
    const checked = tool('kubeconform', ['-strict', '-summary', '-schema-location', SCHEMAS], stdout);
    expect(checked).toMatchObject({ status: 0, stdout: expect.stringContaining(`Valid: ${kinds.length}, Invalid: 0`) });
    expect(tool('helm', ['lint', '--strict', CHART, ...CLUSTER, ...flags(values)])).toMatchObject({ status: 0 });
  });

  test('kubeconform notices a field that does not exist', () => {
    const wrong = render(SECRET).stdout.replace('podManagementPolicy:', 'podManagmentPolicy:');
    expect(tool('kubeconform', ['-strict', '-schema-location', SCHEMAS], wrong).stdout).toContain('podManagmentPolicy');
  });

  test.each([
    ['no key', {}, 'Set auth.existingSecret'],
    ['an unknown value', { ...SECRET, replica: 3 }, 'replica'],
    ['an unknown kind of scaling', { ...SECRET, 'autoscaling.kind': 'vpa' }, 'kind'],
    ['a model that is no id', { ...SECRET, 'model.id': 'qwen' }, 'id'],
    ['a pool without a picker', { ...SECRET, 'inferencePool.enabled': true }, 'Set inferencePool.picker.name'],
    ['a route without a gateway', { ...SECRET, 'httpRoute.enabled': true }, 'Set httpRoute.parentRefs'],
  ])('refuses %s', (_, values, message) => {
    const { status, stderr } = render(values);
    expect(status).toBe(1);
    expect(stderr).toContain(message);
  });

  test.each([
    ['only a key', SECRET],
    ['everything', ALL],
  ])('starts no container as root or with a root that can be written: %s', (_, values) => {
    const { spec } = named(documents(values), 'StatefulSet').spec.template;
    expect(spec).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
    });
    for (const container of [...spec.containers, ...(spec.initContainers ?? [])]) {
      expect(container.resources.limits.memory).toBeDefined();
      expect(container.securityContext).toEqual({
        readOnlyRootFilesystem: true,
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'] },
      });
    }
  });

  test('passes flags that assay serve has, and probes routes that need no key', () => {
    const { spec } = named(documents(ALL), 'StatefulSet').spec.template;
    const program = new Command();
    addServe(program, () => Promise.reject(new Error('not called')));
    const known = program.commands[0]!.options.map(({ long }) => long);
    const [box] = spec.containers;
    for (const arg of box.args.filter((arg: string) => arg.startsWith('--')))
      expect(known).toContain(arg.split('=')[0]);
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      const route = ROUTES.find(({ path }) => path === box[probe].httpGet.path);
      expect(route).toMatchObject({ method: 'GET', key: 'never' });
    }
  });

  test.each([
    ['a model of the hub', { 'model.id': 'some/model' }, [['pull', 'some/model']]],
    ['the starter, which is in the image', {}, []],
    ['no pull', { 'model.id': 'some/model', 'model.pull': false }, []],
  ])('pulls before it starts: %s', (_, values, pulls) => {
    const { initContainers = [] } = named(documents({ ...SECRET, ...values }), 'StatefulSet').spec.template.spec;
    expect(initContainers.map(({ args }: Document) => args)).toEqual(pulls);
  });

  test('waits for the delay, the drain and 5 s more', () => {
    const values = { ...SECRET, shutdownDelay: 7, drainSeconds: 300 };
    const { spec } = named(documents(values), 'StatefulSet').spec.template;
    expect(spec.terminationGracePeriodSeconds).toBe(312);
    expect(spec.containers[0].args).toEqual(expect.arrayContaining(['--shutdown-delay=7', '--drain-seconds=300']));
  });

  test('spreads its own pods, also by constraints that name none', () => {
    const own = { matchLabels: { 'app.kubernetes.io/name': 'assay', 'app.kubernetes.io/instance': 'box' } };
    const other = { maxSkew: 2, topologyKey: 'rack', whenUnsatisfiable: 'DoNotSchedule', labelSelector: {} };
    const spread = (values: Values) =>
      named(documents(values), 'StatefulSet').spec.template.spec.topologySpreadConstraints;
    expect(spread(SECRET)).toMatchObject([{ topologyKey: 'kubernetes.io/hostname', labelSelector: own }]);
    const [zone] = ALL.topologySpreadConstraints;
    expect(spread({ ...SECRET, topologySpreadConstraints: [zone, other] })).toEqual([
      { ...zone, labelSelector: own },
      other,
    ]);
  });

  test('leaves the number of boxes to what scales them', () => {
    expect(named(documents({ ...SECRET, replicas: 5 }), 'StatefulSet').spec.replicas).toBe(5);
    expect(named(documents(ALL), 'StatefulSet').spec).not.toHaveProperty('replicas');
  });
});
