import { expect, test } from 'vitest';
import type { ServiceSettings } from '../../service/service-unit.ts';
import {
  hiddenFromService,
  installSteps,
  type MachineFacts,
  type Step,
  uninstallSteps,
  unitFolder,
} from './service.ts';

const SETTINGS: ServiceSettings = {
  scope: 'user',
  command: ['/usr/bin/node', '/opt/assay/bin.js'],
  flags: [],
  host: '127.0.0.1',
  port: 8080,
  home: '/h',
  cache: '/c',
  memory: '90%',
  stopSeconds: 25,
  offline: false,
  deviceGroups: [],
};
const FACTS: MachineFacts = { unitFolder: '/u', installed: [], hasAccount: false };
const BOTH = ['assay.service', 'assay.socket'];

const short = (step: Step): string => (step.kind === 'run' ? step.command.join(' ') : `${step.kind} ${step.path}`);

const ROWS: [string, Partial<ServiceSettings>, Partial<MachineFacts>, string[]][] = [
  [
    'a first service of an account',
    {},
    {},
    [
      'install -d -m 0700 /h',
      'install -d -m 0700 /c',
      'write /u/assay.service',
      'systemctl --user daemon-reload',
      'systemctl --user enable assay.service',
      'systemctl --user restart assay.service',
    ],
  ],
  [
    'a first service of the machine, offline',
    { scope: 'system', offline: true },
    {},
    [
      'useradd --system --user-group --home-dir /h --no-create-home --shell /usr/sbin/nologin assay',
      'install -d -m 0750 -o assay -g assay /h',
      'install -d -m 0750 -o assay -g assay /c',
      'write /u/assay.service',
      'write /u/assay.socket',
      'systemctl daemon-reload',
      'systemctl enable assay.service assay.socket',
      'systemctl stop assay.service',
      'systemctl restart assay.socket',
      'systemctl restart assay.service',
    ],
  ],
  [
    'one that was offline before: its socket would keep the port',
    { scope: 'system' },
    { installed: BOTH, hasAccount: true },
    [
      'systemctl stop assay.service assay.socket',
      'systemctl disable assay.socket',
      'remove /u/assay.socket',
      'install -d -m 0750 -o assay -g assay /h',
      'install -d -m 0750 -o assay -g assay /c',
      'write /u/assay.service',
      'systemctl daemon-reload',
      'systemctl enable assay.service',
      'systemctl restart assay.service',
    ],
  ],
];

test.each(ROWS)('installs %s', (_, changes, facts, steps) => {
  expect(installSteps({ ...SETTINGS, ...changes }, { ...FACTS, ...facts }).map(short)).toEqual(steps);
});

test('uninstalls what is installed, and nothing else', () => {
  expect(uninstallSteps('system', { ...FACTS, installed: BOTH }).map(short)).toEqual([
    'systemctl stop assay.service assay.socket',
    'systemctl disable assay.service assay.socket',
    'remove /u/assay.service',
    'remove /u/assay.socket',
    'systemctl daemon-reload',
  ]);
});

test.each([
  ['system', {}, '/etc/systemd/system'],
  ['user', {}, '/home/alice/.config/systemd/user'],
  ['user', { XDG_CONFIG_HOME: '/x' }, '/x/systemd/user'],
] as const)('the units of the scope %s are in their folder', (scope, env, folder) => {
  expect(unitFolder(scope, env, '/home/alice')).toBe(folder);
});

test.each([
  [['/usr/bin/node', '/usr/lib/assay/bin.js'], null],
  [['/home/alice/.nvm/node', '/usr/lib/assay/bin.js'], '/home/alice/.nvm/node'],
  [['/usr/bin/node', '/root/assay/bin.js'], '/root/assay/bin.js'],
  [['/homes/node'], null],
])('finds what a service of the machine cannot read in %j', (paths, hidden) => {
  expect(hiddenFromService(paths)).toBe(hidden);
});
