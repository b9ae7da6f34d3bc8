import { parseModelId } from '../../lib/model-id.ts';
import { hostOver, ScriptedEngine } from './machine.ts';

/*
 * Compiles `assay/tiny` in a process of its own and reports each step: `node compile-process.ts <base folder>
 * [<line>]`. Lines on standard output: one for each progress, at last `done <compiled>`. At the first line that begins
 * with the given one it stops itself (SIGSTOP), so that a test meets it there, however slow the machine is.
 */
const [base = '', stopAt] = process.argv.slice(2);
let stopped = false;
const { host } = hostOver(base, new ScriptedEngine());
for await (const event of host.download(parseModelId('assay/tiny'), { allowDownload: false })) {
  const line = event.type === 'done' ? `done ${event.report.compiled}` : `${event.stage} ${event.step ?? event.file}`;
  process.stdout.write(`${line}\n`);
  if (stopAt === undefined || stopped || !line.startsWith(stopAt)) continue;
  stopped = true;
  process.kill(process.pid, 'SIGSTOP');
}
