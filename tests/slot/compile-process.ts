import { parseModelId } from '../../lib/model-id.ts';
import { hostOver, ScriptedEngine } from './machine.ts';

/*
 * A process that compiles `assay/tiny` and says what it does: `node compile-process.ts <base folder> <ms to wait in the compile>`.
 * Lines on standard output: one for each progress, at last `done <compiled>`.
 */
const [base = '', waitMs = '0'] = process.argv.slice(2);
const engine = new ScriptedEngine();
engine.compiling = new Promise((resolve) => setTimeout(resolve, Number(waitMs)));
const { host } = hostOver(base, engine);
for await (const event of host.download(parseModelId('assay/tiny'), { allowDownload: false })) {
  const line = event.type === 'done' ? `done ${event.report.compiled}` : `${event.stage} ${event.step ?? event.file}`;
  process.stdout.write(`${line}\n`);
}
