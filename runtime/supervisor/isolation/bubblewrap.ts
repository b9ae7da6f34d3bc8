import { execFile } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { type ProcessNeeds, programFolders } from './process-needs.ts';

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
export function bubblewrap({ read, write }: Pick<ProcessNeeds, 'read' | 'write'>): string[] {
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
export function whyNoBubblewrap(): Promise<string | null> {
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
