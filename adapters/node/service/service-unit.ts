import { isLoopback } from '../loopback.ts';

/**
 * Kinds of services: `user` runs as one account and starts at its login; `system` runs as `ACCOUNT` and starts at boot.
 */
export type Scope = 'user' | 'system';

/** Describes the service to install. Paths are absolute. */
export interface ServiceSettings {
  readonly scope: Scope;
  /** Paths of the Node executable and of the program that it runs. */
  readonly command: readonly [node: string, program: string];
  /** Flags of `assay serve` besides `--host` and `--port`. */
  readonly flags: readonly string[];
  readonly host: string;
  readonly port: number;
  /** Folder with keys and compiled models. */
  readonly home: string;
  /** Folder with downloads, in the layout of Hugging Face's tools. */
  readonly cache: string;
  /** File with a key to accept besides those in `home`; absent: none. */
  readonly apiKeyFile?: string | undefined;
  /** Memory limit of the whole service, such as `8G` or `90%`. */
  readonly memory: string;
  /** Seconds that the server may take to stop. */
  readonly stopSeconds: number;
  /** True: the service has no network except its port, which systemd opens. */
  readonly offline: boolean;
  /** Groups whose members may use GPUs and NPUs, for the scope `system`; a user's service has the user's groups. */
  readonly deviceGroups: readonly string[];
}

/** Account that a system service runs as. */
export const ACCOUNT = 'assay';

/** Returns the text of each unit file by its name. Sources: systemd.exec(5), systemd.resource-control(5). */
export function serviceUnits(settings: ServiceSettings): Record<string, string> {
  const service = text([...unitSection(settings), ...serviceSection(settings), ...installSection(settings)]);
  return settings.offline
    ? { 'assay.service': service, 'assay.socket': socketUnit(settings) }
    : { 'assay.service': service };
}

function unitSection({ offline, scope }: ServiceSettings): string[] {
  return [
    '# Written by `assay service install`, which replaces it. Own changes: systemctl edit assay.',
    '[Unit]',
    'Description=Assay: many small judgement tasks with a local language model',
    ...(offline ? ['Requires=assay.socket', 'After=assay.socket'] : []),
    ...(scope === 'system' && !offline ? ['After=network-online.target', 'Wants=network-online.target'] : []),
    '# After five failed starts in five minutes it stays stopped.',
    'StartLimitIntervalSec=300',
    'StartLimitBurst=5',
    '',
  ];
}

function serviceSection(settings: ServiceSettings): string[] {
  const { scope, command, flags, host, port, home, cache, apiKeyFile, memory, offline, deviceGroups, stopSeconds } =
    settings;
  const serve = [...command, 'serve', '--host', host, '--port', String(port), ...flags];
  const system = scope === 'system';
  return [
    '[Service]',
    '# The server says when it listens, and then that it lives: systemd restarts one whose event loop hangs.',
    'Type=notify',
    'NotifyAccess=all',
    'WatchdogSec=60',
    `ExecStart=${serve.map(word).join(' ')}`,
    ...environment('ASSAY_HOME', home),
    ...environment('HF_HOME', cache),
    ...(offline ? environment('HF_HUB_OFFLINE', '1') : []),
    ...(apiKeyFile === undefined
      ? []
      : [`LoadCredential=${word(`api-key:${apiKeyFile}`)}`, 'Environment=ASSAY_API_KEY_FILE=%d/api-key']),
    ...(system ? [`User=${ACCOUNT}`, `Group=${ACCOUNT}`] : []),
    ...(system && deviceGroups.length > 0 ? [`SupplementaryGroups=${deviceGroups.join(' ')}`] : []),
    'SyslogIdentifier=assay',
    'UMask=0077',
    'Restart=on-failure',
    'RestartSec=2',
    '# Exit code 2: a flag or a key is missing, which no restart changes.',
    'RestartPreventExitStatus=2',
    '# The server stops its own processes, after --shutdown-delay and --drain-seconds.',
    'KillMode=mixed',
    `TimeoutStopSec=${stopSeconds}`,
    '# The server restarts an engine process that ran out of memory.',
    'OOMPolicy=continue',
    `MemoryMax=${memory}`,
    'TasksMax=512',
    '',
    ...sandbox(settings),
    '',
  ];
}

/** Returns the directives that isolate the service from the rest of the machine. */
function sandbox({ home, cache, host, offline, scope }: ServiceSettings): string[] {
  return [
    '# Files: read only, except the two folders. No other home, no /tmp of others.',
    'ProtectSystem=strict',
    `ProtectHome=${scope === 'system' ? 'yes' : 'read-only'}`,
    `ReadWritePaths=${word(home)} ${word(cache)}`,
    'PrivateTmp=yes',
    'NoNewPrivileges=yes',
    ...(scope === 'system'
      ? ['CapabilityBoundingSet=', 'AmbientCapabilities=', 'ProtectClock=yes', 'ProtectKernelModules=yes']
      : [
          "# Without this, systemd 252 silently ignores the limits of this section in a user's session.",
          'PrivateUsers=yes',
        ]),
    'ProtectControlGroups=yes',
    'ProtectHostname=yes',
    'LockPersonality=yes',
    'RestrictRealtime=yes',
    'RestrictSUIDSGID=yes',
    'KeyringMode=private',
    '# Models run in namespaces of their own (bubblewrap) with a /proc of their own. The kernel refuses that where parts',
    '# of /proc are hidden: so no RestrictNamespaces=, ProtectKernelTunables=, ProtectKernelLogs=, ProtectProc=.',
    'SystemCallArchitectures=native',
    'SystemCallFilter=@system-service @mount',
    'SystemCallErrorNumber=EPERM',
    '# No MemoryDenyWriteExecute=: JavaScript is compiled to machine code as it runs.',
    ...(scope === 'system' ? ['# GPUs and NPUs, and no other device.', 'DevicePolicy=closed', ...DEVICES] : []),
    ...network(host, offline),
  ];
}

const DEVICES = ['char-drm', 'char-accel', 'char-kfd', 'char-nvidia*', 'char-fastrpc'].map(
  (name) => `DeviceAllow=${name} rw`,
);

function network(host: string, offline: boolean): string[] {
  // bubblewrap needs netlink to set up the loopback interface of its namespace.
  const families = 'RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK';
  if (!offline) return ['# Downloads need the network; `assay service install --offline` goes without.', families];
  return [
    '# No network: connections come in through the socket that systemd opened.',
    'PrivateNetwork=yes',
    families,
    ...(isLoopback(host) ? ['IPAddressDeny=any', 'IPAddressAllow=localhost'] : []),
  ];
}

function installSection({ offline, scope }: ServiceSettings): string[] {
  if (offline) return ['[Install]', 'Also=assay.socket', ...wantedBy(scope)];
  return ['[Install]', ...wantedBy(scope)];
}

const wantedBy = (scope: Scope): string[] => [
  `WantedBy=${scope === 'system' ? 'multi-user.target' : 'default.target'}`,
];

function socketUnit({ host, port }: ServiceSettings): string {
  const address = host === 'localhost' ? '127.0.0.1' : host;
  return text([
    '# Written by `assay service install --offline`, which replaces it.',
    '[Unit]',
    'Description=Port of Assay',
    '',
    '[Socket]',
    `ListenStream=${address.includes(':') ? `[${address}]` : address}:${port}`,
    '',
    '[Install]',
    'WantedBy=sockets.target',
  ]);
}

const text = (lines: readonly string[]): string => `${lines.join('\n')}\n`;

const environment = (name: string, value: string): string[] => [`Environment=${word(`${name}=${value}`)}`];

/**
 * Quotes a word for a unit file, and escapes `%` and `$`, which begin specifiers and variables. Source:
 * systemd.syntax(7).
 */
function word(value: string): string {
  const escaped = value.replaceAll('%', '%%').replaceAll('$', '$$$$');
  return /^[\w@%+=:,./$*-]+$/.test(escaped) ? escaped : `"${escaped.replace(/["\\]/g, '\\$&')}"`;
}
