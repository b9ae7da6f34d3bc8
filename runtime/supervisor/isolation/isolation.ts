import { execFile } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { readdir, realpath } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AssayError } from '../../../lib/errors.ts';
import type { Launch } from '../../process/child.ts';

/** Lists the files, memory and devices that a process needs. The active layers of isolation block everything else. */
export interface ProcessNeeds {
  /** Absolute paths of the files and folders that the process reads, in addition to the program itself. */
  read: readonly string[];
  /** Absolute paths of the folders that the process writes to. */
  write: readonly string[];
  /** Maximum bytes of memory that a valid model can need. */
  memoryBytes: number;
  /**
   * True if the process uses native drivers: for a plugin, or for a device other than the CPU. Only the layer
   * `permissions` isolates it then.
   */
  drivers: boolean;
}

/**
 * Returns the files and folders that contain the program: the code of this package, and every `node_modules` folder
 * in and above it, in which an installed package finds its dependencies. Other files of the package's folder, which in
 * a checkout may be keys and settings, are not among them.
 */
export function programFolders(): string[] {
  const root = packageRoot();
  const above: string[] = [];
  for (let folder = root; folder !== dirname(folder); folder = dirname(folder))
    above.push(join(folder, 'node_modules'));
  const own = PROGRAM.map((name) => join(root, name));
  return [...own, ...above].filter((path) => existsSync(path));
}

/** Parts of this package that its processes run: `package.json` tells Node the kind of modules. */
const PROGRAM = ['package.json', 'dist', 'runtime', 'lib'];

/**
 * Returns the absolute paths of the targets of the symbolic links in a folder and its subfolders; none if the folder
 * does not exist. Skips links to missing files, which the compile reports if it needs them. A compile must be allowed
 * to read the targets, because the shared model cache consists of links.
 */
export async function linkTargets(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => []);
  const links = entries.filter((entry) => entry.isSymbolicLink());
  const targets = links.map((entry) => realpath(join(entry.parentPath, entry.name)).catch(() => null));
  return (await Promise.all(targets)).filter((target) => target !== null);
}

/** Returns the nearest folder above this file that has a `package.json`: the repository, or the installed package. */
function packageRoot(): string {
  let folder = dirname(realpathSync(fileURLToPath(import.meta.url)));
  while (!existsSync(join(folder, 'package.json')) && folder !== dirname(folder)) folder = dirname(folder);
  return folder;
}

/**
 * Modes of isolation. `auto` uses every layer that the system supports; `strict` requires all layers, or the server
 * does not start; `off` uses none.
 */
export const ISOLATION_MODES = ['auto', 'strict', 'off'] as const;
export type IsolationMode = (typeof ISOLATION_MODES)[number];

/**
 * Describes one layer of isolation between the rest of the machine and the processes that run untrusted files and
 * native code.
 */
interface Layer {
  name: 'permissions' | 'limits' | 'namespaces';
  active: boolean;
  /** Reason why the layer is not active; null if it is. */
  why: string | null;
  protectsFrom: string;
  notFrom: string;
}

const TEXTS = {
  permissions: {
    protectsFrom: 'JavaScript that reads or writes other files, or starts programs',
    notFrom: 'native code, and use of the network',
  },
  limits: {
    protectsFrom: 'memory beyond what the model can need, and core files with prompts in them',
    notFrom: 'use of the processor, until a deadline ends a process without progress',
  },
  namespaces: {
    protectsFrom:
      "native code too: use of the network, signals to other processes, and all files except the system's libraries and the model's",
    notFrom:
      'faults of the kernel; used only for models on the CPU, because drivers of other devices need more of the system',
  },
} as const satisfies Record<Layer['name'], Pick<Layer, 'protectsFrom' | 'notFrom'>>;

/** Builds the commands that start the processes for untrusted files. */
export interface Isolation {
  readonly layers: readonly Layer[];
  /** Returns the command for a process with these needs, isolated by the active layers; `nodeFlags` are added to it. */
  launch(needs: ProcessNeeds, nodeFlags: readonly string[]): Launch;
}

/** Isolation without any layer. */
export const NO_ISOLATION: Isolation = {
  layers: [],
  launch: (_, nodeFlags) => ({ execPath: process.execPath, execArgv: [...nodeFlags] }),
};

/**
 * Returns the isolation with all layers that work on this machine; with none in mode `off`. Throws `invalid_value` in
 * mode `strict` if a layer does not work.
 */
export async function openIsolation(mode: IsolationMode): Promise<Isolation> {
  const off = mode === 'off' ? 'it was turned off (--isolation off)' : null;
  const layer = (name: Layer['name'], why: string | null): Layer => ({
    name,
    active: (off ?? why) === null,
    why: off ?? why,
    ...TEXTS[name],
  });
  const layers = [
    layer('permissions', hasPermissions() ? null : 'this Node has no permission model (22.13 and newer have it)'),
    layer('limits', process.platform === 'linux' ? null : 'only on Linux; elsewhere a watch ends the process'),
    layer('namespaces', off ?? (await whyNoBubblewrap())),
  ];
  const missing = layers.find(({ active }) => !active);
  if (mode === 'strict' && missing) {
    const message = `--isolation strict needs ${missing.name}, which is not available: ${missing.why}. Fix that, or omit the flag.`;
    throw new AssayError('invalid_value', message);
  }
  return isolationOf(layers);
}

function isolationOf(layers: readonly Layer[]): Isolation {
  const has = (name: Layer['name']) => layers.some((layer) => layer.name === name && layer.active);
  return {
    layers,
    launch(needs, nodeFlags) {
      const node = [process.execPath, ...nodeFlags, ...(has('permissions') ? permissionFlags(needs) : [])];
      // Drivers of GPUs and NPUs reserve unlimited memory, and need devices and daemons, so these layers cannot apply.
      const limits = has('limits') && !needs.drivers ? processLimits(needs) : [];
      const namespaces = has('namespaces') && !needs.drivers ? bubblewrap(needs) : [];
      const [execPath, ...execArgv] = [...limits, ...namespaces, ...node];
      return { execPath: execPath!, execArgv };
    },
  };
}

/** Tells whether this version of Node has the permission model. Source: Node's documentation, "Permission Model". */
const hasPermissions = (): boolean => process.allowedNodeEnvironmentFlags.has('--permission');

/**
 * Returns the Node flags that restrict a process's JavaScript to the given files: reading or writing others and
 * starting programs throw. The flags allow native code (onnxruntime) and do not restrict it. Worker threads, such as
 * the one for templates, inherit them.
 */
function permissionFlags({ read, write }: Pick<ProcessNeeds, 'read' | 'write'>): string[] {
  return [
    '--permission',
    '--allow-addons',
    '--allow-worker',
    ...[...programFolders(), ...CPU_FACTS, ...read, ...write].map((path) => `--allow-fs-read=${path}`),
    ...write.map((path) => `--allow-fs-write=${path}`),
    // Without this flag, Node warns at each start that addons and workers are allowed.
    '--disable-warning=SecurityWarning',
  ];
}

/** File in which Linux describes the CPU; `runtime/compile/kernels.ts` reads it. */
const CPU_FACTS = ['/proc/cpuinfo'];

/** Memory that Node itself needs without a model, in bytes: V8's compiled code and young heap. */
const BASE_BYTES = 2 ** 30;
/** Memory for the stack of each thread, in bytes. The number of processors stands for the number of threads. */
const STACK_BYTES = 16 * 2 ** 20;

/**
 * Returns the command prefix that runs a program with limited memory (RLIMIT_DATA, getrlimit(2)) and without core
 * files, which would contain prompts. Allocations beyond the limit fail at once, before the supervisor's next check of
 * the memory. Append the program and its arguments.
 */
function processLimits({ memoryBytes }: Pick<ProcessNeeds, 'memoryBytes'>): string[] {
  const bytes = memoryBytes + BASE_BYTES + availableParallelism() * STACK_BYTES;
  return ['/bin/sh', '-c', `ulimit -c 0; ulimit -d ${Math.ceil(bytes / 1024)}; exec "$@"`, 'sh'];
}

const BUBBLEWRAP = 'bwrap';

/**
 * System folders with programs and libraries, which the process may read. Missing ones are skipped. They contain no
 * home folder, no files of other users and no sockets.
 */
const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/opt', '/nix', '/gnu', '/sys'];
const LINKER = ['/etc/ld.so.cache', '/etc/ld.so.conf', '/etc/ld.so.conf.d', '/etc/alternatives'];

/** Timeout of the test of bwrap, in milliseconds. */
const PROBE_MS = 10_000;

/**
 * Returns the command prefix that runs a program in its own Linux namespaces: without network, unable to see other
 * processes, and with access only to the system's libraries, the program, and the files in `read` and `write`. Append
 * the program and its arguments. Source: bwrap(1).
 */
function bubblewrap({ read, write }: Pick<ProcessNeeds, 'read' | 'write'>): string[] {
  const bind = (flag: string, paths: readonly string[]) => paths.flatMap((path) => [flag, path, path]);
  return [
    BUBBLEWRAP,
    ...['--unshare-user', '--unshare-net', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
    ...['--die-with-parent', '--new-session', '--cap-drop', 'ALL'],
    ...bind('--ro-bind-try', [...SYSTEM, ...LINKER]),
    ...['--proc', '/proc', '--dev', '/dev', '--remount-ro', '/dev', '--dir', '/tmp'],
    ...bind('--ro-bind', [...programFolders(), process.execPath, realpathSync(process.execPath), ...read]),
    ...bind('--bind', write),
    // The root is an empty in-memory file system. It is made read-only, or the process could fill the memory with
    // files.
    ...['--remount-ro', '/', '--'],
  ];
}

/** Tests whether bwrap works on this machine. Returns null if it does, otherwise the reason why not. */
function whyNoBubblewrap(): Promise<string | null> {
  if (process.platform !== 'linux') return Promise.resolve('bubblewrap exists only for Linux');
  const [command = BUBBLEWRAP, ...flags] = bubblewrap({ read: [], write: [] });
  return new Promise((resolve) => {
    execFile(command, [...flags, process.execPath, '--version'], { timeout: PROBE_MS }, (error, _, stderr) => {
      if (!error) resolve(null);
      else if (error.code === 'ENOENT') resolve('bwrap is not installed (apt install bubblewrap)');
      else
        resolve(`bwrap cannot make namespaces here (${stderr.trim().split('\n')[0]?.slice(0, 200) || error.message})`);
    });
  });
}
