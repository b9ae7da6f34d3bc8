import { spawn } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { SETTING_NAMES, type ServerFlags, type SettingName, serveFlags, serverConfig } from '../../config.ts';
import { isLoopback } from '../../loopback.ts';
import { ACCOUNT, type Scope, type ServiceSettings, serviceUnits } from '../../service/service-unit.ts';
import { UsageError } from '../../usage-error.ts';
import { givenServerFlags, serverOption } from '../parse-flags.ts';
import { screen } from '../screen.ts';

/** Describes one step of installing or removing the service: a file to write or remove, or a command to run. */
export type Step =
  | { readonly kind: 'write'; readonly path: string; readonly text: string }
  | { readonly kind: 'remove'; readonly path: string }
  | { readonly kind: 'run'; readonly command: readonly string[] };

/** Holds the state of the machine that the steps depend on. */
export interface MachineFacts {
  /** Folder in which systemd looks for the unit files. */
  readonly unitFolder: string;
  /** Names of those of `UNIT_FILES` that exist in `unitFolder`. */
  readonly installed: readonly string[];
  /** True if the account `ACCOUNT`, which a system service runs as, exists. */
  readonly hasAccount: boolean;
}

const UNIT_FILES = ['assay.service', 'assay.socket'] as const;

/**
 * Returns the folder in which systemd looks for the unit files of a scope. `home` is the user's home folder. Source:
 * systemd.unit(5).
 */
export function unitFolder(scope: Scope, env: Record<string, string | undefined>, home: string): string {
  if (scope === 'system') return '/etc/systemd/system';
  return join(env.XDG_CONFIG_HOME || join(home, '.config'), 'systemd/user');
}

/** Returns the steps that install the service, or replace an installed one, and start it. */
export function installSteps(settings: ServiceSettings, facts: MachineFacts): Step[] {
  const { scope, home, cache, offline } = settings;
  const units = serviceUnits(settings);
  const systemctl = systemctlOf(scope);
  const outdated = facts.installed.filter((name) => !(name in units));
  return [
    ...removal(outdated, scope, facts),
    ...(scope === 'system' ? account(home, facts) : []),
    ...[home, cache].map((folder): Step => ({ kind: 'run', command: ['install', '-d', ...owner(scope), folder] })),
    ...Object.entries(units).map(([name, text]): Step => ({ kind: 'write', path: join(facts.unitFolder, name), text })),
    systemctl('daemon-reload'),
    systemctl('enable', ...Object.keys(units)),
    // The service must stop before systemd can bind its socket again.
    ...(offline ? [systemctl('stop', 'assay.service'), systemctl('restart', 'assay.socket')] : []),
    systemctl('restart', 'assay.service'),
  ];
}

/** Returns the steps that stop and remove the service. Models, keys and the account `ACCOUNT` stay. */
export function uninstallSteps(scope: Scope, facts: MachineFacts): Step[] {
  return [...removal(facts.installed, scope, facts), systemctlOf(scope)('daemon-reload')];
}

/** Returns a function that makes a step which runs systemctl with these arguments, for the services of `scope`. */
function systemctlOf(scope: Scope): (...args: string[]) => Step & { kind: 'run' } {
  const command = ['systemctl', ...(scope === 'user' ? ['--user'] : [])];
  return (...args) => ({ kind: 'run', command: [...command, ...args] });
}

function removal(names: readonly string[], scope: Scope, { unitFolder }: MachineFacts): Step[] {
  if (names.length === 0) return [];
  const systemctl = systemctlOf(scope);
  return [
    // Stops the service and its socket together, because a request at the socket would start the service again.
    systemctl('stop', ...new Set(['assay.service', ...names])),
    systemctl('disable', ...names),
    ...names.map((name): Step => ({ kind: 'remove', path: join(unitFolder, name) })),
  ];
}

function account(home: string, { hasAccount }: MachineFacts): Step[] {
  if (hasAccount) return [];
  const flags = ['--system', '--user-group', '--home-dir', home, '--no-create-home', '--shell', '/usr/sbin/nologin'];
  return [{ kind: 'run', command: ['useradd', ...flags, ACCOUNT] }];
}

/** Returns the flags with which install(1) gives a folder to the service's account. Other users cannot read it. */
const owner = (scope: Scope): string[] =>
  scope === 'system' ? ['-m', '0750', '-o', ACCOUNT, '-g', ACCOUNT] : ['-m', '0700'];

/** Folders whose contents a system service cannot see (`ProtectHome=yes`). */
const HIDDEN = ['/home/', '/root/', '/run/user/'];

/** Returns the first of these absolute paths that a system service cannot read; null if it can read all. */
export const hiddenFromService = (paths: readonly string[]): string | null =>
  paths.find((path) => HIDDEN.some((folder) => `${dirname(path)}/`.startsWith(folder))) ?? null;

/**
 * Flags of the server that the service has in another form: the unit states address and folder, systemd holds the key,
 * and `--memory` limits the service, in which models have 80% of it.
 */
const OWN: readonly SettingName[] = ['host', 'port', 'home', 'apiKey', 'memory'];

interface InstallFlags {
  apiKeyFile?: string;
  memory: string;
  offline: boolean;
  print?: boolean;
}

/** Adds the command `assay service`. */
export function addService(program: Command): void {
  const service = program
    .command('service')
    .description('Run the server in the background, started with the machine or your session (Linux with systemd).')
    .addHelpText('after', HELP);
  const installing = service
    .command('install')
    .description(
      'Write a hardened systemd unit, enable and start it: as root for the machine, otherwise for your account. All flags of "assay serve" are those of the service, but for --api-key, --memory and --log-level.',
    )
    .addOption(serverOption('host'))
    .addOption(serverOption('port'))
    .option('--home <folder>', 'folder with keys and models (default: ~/.assay; as root /var/lib/assay)')
    .option(
      '--api-key-file <path>',
      'file with a key to accept besides those in the home folder; only systemd reads it',
    )
    .option('--memory <limit>', 'memory limit of the server and models together, such as 8G or 75%', memoryLimit, '90%')
    .option('--offline', 'give the server no network except its port, so that it can download and send nothing', false)
    .option('--print', 'print the units, and change nothing')
    .action((flags: InstallFlags) => install(flags, givenServerFlags(installing)));
  for (const name of SETTING_NAMES) if (!OWN.includes(name)) installing.addOption(serverOption(name));
  service
    .command('uninstall')
    .description('Stop the service and remove its unit. Keys and models stay.')
    .action(uninstall);
  service.command('status').description('Show whether the service runs, and its last log lines.').action(status);
}

const HELP = `
"install" prints each step before it is done. Logs: journalctl --user -u assay (as root: journalctl -u assay).
Containers, macOS, Windows and a proxy in front: docs/deploy.md.

Examples:
  $ assay service install --print
  $ assay service install --port 18080
  $ sudo assay service install --offline
  $ assay service status`;

function memoryLimit(text: string): string {
  if (/^([1-9]\d{0,5}[MGT]|[1-9]\d?%|100%)$/.test(text)) return text;
  throw new InvalidArgumentError('Use a size such as 8G or 800M, or a share of the memory such as 75%.');
}

const scopeOf = (): Scope => (process.getuid?.() === 0 ? 'system' : 'user');

async function install(flags: InstallFlags, given: ServerFlags): Promise<void> {
  const scope = scopeOf();
  const settings = await settingsOf(flags, given, scope);
  if (flags.print) {
    const folder = unitFolder(scope, process.env, homedir());
    for (const [name, text] of Object.entries(serviceUnits(settings))) {
      screen.line(`# ${join(folder, name)}\n${text}`);
    }
    return;
  }
  requireSystemd();
  const hidden = hiddenFromService([...settings.command, settings.home, settings.cache]);
  if (scope === 'system' && hidden) {
    throw new UsageError(
      `A service of the machine cannot read ${hidden}, because it has no access to home folders. Install Node and Assay for all ` +
        'accounts (such as in /usr/local), or run this without root for a service of your account.',
    );
  }
  for (const step of installSteps(settings, await factsOf(scope))) await perform(step);
  screen.line(afterInstall(settings));
}

async function uninstall(): Promise<void> {
  requireSystemd();
  const scope = scopeOf();
  const facts = await factsOf(scope);
  if (facts.installed.length === 0) return screen.line(`No service is installed in ${facts.unitFolder}.`);
  for (const step of uninstallSteps(scope, facts)) await perform(step);
  screen.line('The service is removed. Keys and models stay where they were.');
}

async function status(): Promise<void> {
  requireSystemd();
  const { command } = systemctlOf(scopeOf())('status', '--no-pager', '--lines=10', 'assay.service');
  // systemctl's exit code: 0 means running, 3 not running, 4 not installed.
  process.exitCode = await exitCode(command);
}

async function settingsOf(flags: InstallFlags, given: ServerFlags, scope: Scope): Promise<ServiceSettings> {
  const system = scope === 'system';
  const { memory, offline, apiKeyFile } = flags;
  const { apiKeyFile: _, memory: __, ...others } = given;
  const serverFlags = { ...(system ? { home: '/var/lib/assay' } : {}), ...others };
  const config = serverConfig(serverFlags, process.env);
  if (config.port === 0) throw new UsageError('A service needs a fixed port: --port 8080');
  return {
    scope,
    command: [process.execPath, realpathSync(process.argv[1]!)],
    flags: serveFlags(serverFlags, process.env, OWN),
    host: config.host,
    port: config.port,
    home: config.home,
    cache: system ? '/var/cache/assay' : resolve(process.env.HF_HOME || join(homedir(), '.cache/huggingface')),
    apiKeyFile: apiKeyFile === undefined ? undefined : resolve(apiKeyFile),
    memory,
    // Behind a load balancer, the server waits for 5 s by default. 10 s are for its processes.
    stopSeconds: (config.shutdownDelay ?? 5) + config.drainSeconds + 10,
    offline,
    deviceGroups: system ? await groupsThatExist(['render', 'video']) : [],
  };
}

/** Throws `UsageError` if systemd does not run the services of this machine. Source: sd_booted(3). */
function requireSystemd(): void {
  if (existsSync('/run/systemd/system')) return;
  const system = { darwin: 'macOS has launchd', win32: 'Windows has scheduled tasks' }[process.platform as string];
  throw new UsageError(
    `assay service needs Linux with systemd, which does not run here${system ? ` (${system})` : ''}. ` +
      'docs/deploy.md shows what to use instead. --print shows the unit.',
  );
}

const factsOf = async (scope: Scope): Promise<MachineFacts> => {
  const folder = unitFolder(scope, process.env, homedir());
  const installed = UNIT_FILES.filter((name) => existsSync(join(folder, name)));
  return { unitFolder: folder, installed, hasAccount: (await namesIn('/etc/passwd')).includes(ACCOUNT) };
};

const namesIn = async (file: string): Promise<string[]> =>
  (await readFile(file, 'utf8').catch(() => '')).split('\n').map((line) => line.split(':')[0] ?? '');

async function groupsThatExist(names: readonly string[]): Promise<string[]> {
  const groups = await namesIn('/etc/group');
  return names.filter((name) => groups.includes(name));
}

/** Prints a step, then performs it. Throws an `Error` if its command fails or its file cannot be written or removed. */
async function perform(step: Step): Promise<void> {
  switch (step.kind) {
    case 'write':
      screen.line(`write ${step.path}`);
      await mkdir(dirname(step.path), { recursive: true });
      return writeFile(step.path, step.text);
    case 'remove':
      screen.line(`rm ${step.path}`);
      return rm(step.path, { force: true });
    case 'run': {
      screen.line(step.command.join(' '));
      const code = await exitCode(step.command);
      if (code !== 0) throw new Error(`"${step.command.join(' ')}" failed with exit code ${code}; see above.`);
    }
  }
}

function exitCode([command = '', ...args]: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'inherit' });
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

function afterInstall({ scope, host, port, home }: ServiceSettings): string {
  const keys = `assay keys add my-app --admin --home ${home}`;
  return [
    '',
    `Assay starts at every ${scope === 'system' ? 'boot' : 'login'}: http://${isLoopback(host) ? host : 'localhost'}:${port}/playground`,
    `Make a key: ${scope === 'system' ? `sudo -u ${ACCOUNT} ` : ''}${keys}`,
    `Log: journalctl ${scope === 'system' ? '' : '--user '}-u assay -f`,
    ...(scope === 'user' ? ['To run it without a login too: loginctl enable-linger'] : []),
  ].join('\n');
}
