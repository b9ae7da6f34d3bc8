import { type ProcessNeeds, programFolders } from './process-needs.ts';

/** Whether this Node has the permission model. Source: Node's documentation, "Permission Model". */
export const hasPermissions = (): boolean => process.allowedNodeEnvironmentFlags.has('--permission');

/**
 * Returns the flags that hold a process's JavaScript to its own files: reading elsewhere, writing elsewhere and
 * starting programs throw.
 * Native code (onnxruntime) has to be allowed, and isn't held by it; the thread for templates inherits it.
 */
export function permissionFlags({ read, write }: Pick<ProcessNeeds, 'read' | 'write'>): string[] {
  return [
    '--permission',
    '--allow-addons',
    '--allow-worker',
    ...[...programFolders(), ...CPU_FACTS, ...read, ...write].map((path) => `--allow-fs-read=${path}`),
    ...write.map((path) => `--allow-fs-write=${path}`),
    // It warns of the two allowances above at each start.
    '--disable-warning=SecurityWarning',
  ];
}

/** Where Linux says what the CPU can do. */
const CPU_FACTS = ['/proc/cpuinfo'];
