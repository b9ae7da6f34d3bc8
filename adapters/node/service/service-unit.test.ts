import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { type ServiceSettings, serviceUnits } from './service-unit.ts';

const SETTINGS: ServiceSettings = {
  scope: 'system',
  command: ['/usr/bin/node', '/usr/lib/node_modules/assay/dist/adapters/node/bin.js'],
  flags: ['--model', 'assay/starter'],
  host: '127.0.0.1',
  port: 8080,
  home: '/var/lib/assay',
  cache: '/var/cache/assay',
  memory: '90%',
  stopSeconds: 25,
  offline: false,
  deviceGroups: [],
};

const OFFLINE: Partial<ServiceSettings> = { offline: true };

/** Lists cases: settings that differ, lines that the unit must have, and a pattern that it must not match. */
const ROWS: [string, Partial<ServiceSettings>, string[], RegExp][] = [
  [
    'the machine',
    {},
    ['User=assay', 'ProtectSystem=strict', 'ProtectHome=yes', 'CapabilityBoundingSet=', 'WantedBy=multi-user.target'],
    /PrivateNetwork|SupplementaryGroups|LoadCredential/,
  ],
  [
    'an account',
    { scope: 'user', home: '/home/alice/.assay' },
    [
      'PrivateUsers=yes',
      'ProtectHome=read-only',
      'ReadWritePaths=/home/alice/.assay /var/cache/assay',
      'WantedBy=default.target',
    ],
    // systemd refuses these in a user's session.
    /^(User|Group|SupplementaryGroups|CapabilityBoundingSet|DevicePolicy)=/m,
  ],
  [
    'offline',
    OFFLINE,
    ['PrivateNetwork=yes', 'IPAddressDeny=any', 'Environment=HF_HUB_OFFLINE=1', 'Requires=assay.socket'],
    /network-online/,
  ],
  ['offline for other machines', { ...OFFLINE, host: '0.0.0.0' }, ['PrivateNetwork=yes'], /IPAddressDeny/],
  [
    'a key file',
    { apiKeyFile: '/etc/assay/key' },
    ['LoadCredential=api-key:/etc/assay/key', 'Environment=ASSAY_API_KEY_FILE=%d/api-key'],
    /Environment=ASSAY_API_KEY=/,
  ],
  ['memory', { memory: '8G' }, ['MemoryMax=8G', 'OOMPolicy=continue'], /MemoryMax=90/],
  ['a slow stop', { stopSeconds: 90 }, ['TimeoutStopSec=90'], /TimeoutStopSec=25/],
  ['groups of devices', { deviceGroups: ['render', 'video'] }, ['SupplementaryGroups=render video'], /^User=root/m],
  [
    'odd paths',
    { home: '/srv/my %h "$models"\\x' },
    ['Environment="ASSAY_HOME=/srv/my %%h \\"$$models\\"\\\\x"'],
    // These directives would keep bubblewrap from mounting /proc, or V8 from writing machine code.
    /^(ProtectKernelTunables|ProtectKernelLogs|ProtectProc|ProcSubset|RestrictNamespaces|MemoryDenyWriteExecute)=/m,
  ],
];

test.each(ROWS)('the unit for %s', (_, changes, lines, absent) => {
  const unit = serviceUnits({ ...SETTINGS, ...changes })['assay.service']!;
  expect(unit.split('\n')).toEqual(expect.arrayContaining(lines));
  expect(unit).not.toMatch(absent);
  expect(unit).toContain('ExecStart=/usr/bin/node /usr/lib/node_modules/assay/dist/adapters/node/bin.js serve --host');
});

test.each([
  ['127.0.0.1', '127.0.0.1:8080'],
  ['localhost', '127.0.0.1:8080'],
  ['::1', '[::1]:8080'],
  ['0.0.0.0', '0.0.0.0:8080'],
])('the socket of an offline service at %s', (host, stream) => {
  const units = serviceUnits({ ...SETTINGS, ...OFFLINE, host });
  expect(units['assay.socket']).toContain(`ListenStream=${stream}\n`);
});

const analyze = promisify(execFile);
const hasSystemd = await analyze('systemd-analyze', ['--version']).then(
  () => true,
  () => false,
);

describe.skipIf(!hasSystemd)('systemd itself', () => {
  test.each([
    ['the machine', {}],
    ['the machine, offline', OFFLINE],
    ['paths with blanks', { home: '/tmp/a b', cache: '/tmp/c d', apiKeyFile: '/etc/a b' }],
  ])('accepts the unit for %s, and calls its exposure OK', async (_, changes) => {
    // systemd checks that the programs exist.
    const units = serviceUnits({ ...SETTINGS, command: [process.execPath, process.execPath], ...changes });
    const folder = await mkdtemp(join(tmpdir(), 'assay-unit-'));
    try {
      for (const [name, text] of Object.entries(units)) await writeFile(join(folder, name), text);
      const service = join(folder, 'assay.service');
      const verified = await analyze('systemd-analyze', ['verify', service]);
      expect(verified.stderr.split('\n').filter((line) => line.includes('assay'))).toEqual([]);
      // Exposure is 0 (none) to 10; the threshold is in tenths. systemd 252 gives 3.2.
      await analyze('systemd-analyze', ['security', '--offline=yes', '--threshold=40', service]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
