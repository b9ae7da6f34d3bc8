import { type ProcessNeeds, programFolders } from './process-needs.ts';

/** Tells whether this Node has the permission model. Source: Node's documentation, "Permission Model". */
export const hasPermissions = (): boolean => process.allowedNodeEnvironmentFlags.has('--permission');

/**
 * Returns the flags that limit a process's JavaScript to its own files: reading elsewhere, writing elsewhere and
 * starting programs throw. They do not limit native code (onnxruntime), which has to be allowed; the thread for
 * templates inherits them.
 */
export function permissionFlags({ read, write }: Pick<ProcessNeeds, 'read' | 'write'>): string[] {
  return [
    '--permission',
    '--allow-addons',
    '--allow-worker',
    ...[...programFolders(), ...CPU_FACTS, ...read, ...write].map((path) => `--allow-fs-read=${path}`),
    ...write.map((path) => `--allow-fs-write=${path}`),
    // Node warns of the two allowances above at each start.
    '--disable-warning=SecurityWarning',
  ];
}

/** File in which Linux describes the CPU. */
const CPU_FACTS = ['/proc/cpuinfo'];
