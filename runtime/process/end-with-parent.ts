import { Worker } from 'node:worker_threads';

/** Time between two looks at the parent, in milliseconds. */
const LOOK_MS = 1_000;
/** The thread's program: when a process dies, its children get another parent. */
const LOOK = `const { workerData } = require('node:worker_threads');
setInterval(() => process.ppid === workerData || process.kill(process.pid, 'SIGKILL'), ${LOOK_MS});`;
/** The thread takes about 15 MB nevertheless, which Node itself needs for one. */
const LITTLE = { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1, stackSizeMb: 1 };

/**
 * Ends this process when its parent has died, even while native code or a text without end keeps its thread, which then
 * does not notice that the channel closed. A process whose parent is the first one of its namespace needs no thread for
 * that: the kernel ends it with that one, which is bwrap, or the server of a container. On Windows, parents stay.
 */
export function endWithParent(): void {
  process.on('disconnect', () => process.exit(0));
  if (process.ppid === 1 || process.platform === 'win32') return;
  const thread = new Worker(LOOK, {
    eval: true,
    workerData: process.ppid,
    env: {},
    execArgv: [],
    resourceLimits: LITTLE,
  });
  thread.unref();
  // Without the thread, the process still ends with its channel.
  thread.on('error', () => {});
}
