import { AssayError } from '../../../lib/errors.ts';
import type { Launch } from '../../process/child.ts';
import { bubblewrap, whyNoBubblewrap } from './bubblewrap.ts';
import { hasPermissions, permissionFlags } from './node-permissions.ts';
import { processLimits } from './process-limits.ts';
import type { ProcessNeeds } from './process-needs.ts';

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
export interface Layer {
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
