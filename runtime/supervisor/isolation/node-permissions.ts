import { type ProcessNeeds, programFolders } from './process-needs.ts';

/** Tells whether this version of Node has the permission model. Source: Node's documentation, "Permission Model". */
export const hasPermissions = (): boolean => process.allowedNodeEnvironmentFlags.has('--permission');

/**
 * Returns the Node flags that restrict a process's JavaScript to the given files: reading or writing others and
 * starting programs throw. The flags allow native code (onnxruntime) and do not restrict it. Worker threads, such as
 * the one for templates, inherit them.
 */
export function permissionFlags({ read, write }: Pick<ProcessNeeds, 'read' | 'write'>): string[] {
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
