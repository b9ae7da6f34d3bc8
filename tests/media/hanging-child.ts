import { setTimeout } from 'node:timers/promises';
import { endWithParent } from '../../runtime/process/end-with-parent.ts';

/*
 * A media process whose decoder does what the file says: hang, wait for ever, crash, run as on a starved machine, or
 * answer. Messages are as in `runtime/media/messages.ts`.
 */
process.on('message', async ({ id, bytes }: { id: number; bytes: Uint8Array }) => {
  const told = Buffer.from(bytes).toString();
  if (told === 'crash') process.kill(process.pid, 'SIGSEGV');
  if (told === 'wait') return;
  for (; told === 'hang'; );
  // 1.5 s of wall time at least, and 300 ms of processor time.
  for (let burst = 0; told === 'starved' && burst < 30; burst++) {
    const before = process.cpuUsage();
    while (process.cpuUsage(before).user + process.cpuUsage(before).system < 10_000);
    await setTimeout(50);
  }
  process.send?.({ type: 'size', id, width: 1, height: 1 });
});
endWithParent();
