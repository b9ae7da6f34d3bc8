import { dirname, join } from 'node:path';
import { ACCOUNT, type Scope, type ServiceSettings, serviceUnits } from './service-unit.ts';

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

export const UNIT_FILES = ['assay.service', 'assay.socket'] as const;

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
export function systemctlOf(scope: Scope): (...args: string[]) => Step & { kind: 'run' } {
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
