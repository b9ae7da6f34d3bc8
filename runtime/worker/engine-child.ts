import { contractInFolder } from '../contracts/read-files.ts';
import { endWithParent } from '../process/end-with-parent.ts';
import { compileEncoder } from './compile-encoder.ts';
import { compileForDevice } from './compile-for-device.ts';
import { compileModel, compileReport } from './compile-model.ts';
import { describeGguf } from './describe-gguf.ts';
import { loadModel } from './load-model.ts';
import { type Channel, serveMessages } from './serve.ts';

/**
 * Entry point of the engine process, which runs all native code and reads untrusted files.
 * `supervisor/children/engine-child.ts` starts it.
 */
endWithParent();
serveMessages(
  {
    load: loadModel,
    describe: describeGguf,
    async compile(spec, onStep) {
      const { plugin, contract, ...options } = spec;
      const found = contract ?? (await contractInFolder(options.source, options.model ?? ''));
      const rows = 'name' in found || found.whole ? found : null;
      const manifest = rows
        ? await compileEncoder({ ...options, onStep }, rows)
        : await compileModel({ ...options, onStep, ...(plugin ? { fixedShapes: 'auto' } : {}) });
      const report = compileReport(manifest);
      if (!plugin) return report;
      const onGraph = (done: number, total: number): void => onStep({ step: 'device', done, total });
      const { compiledFor } = await compileForDevice(spec.target, plugin, { onStep: onGraph });
      const { error, deviceMs, cpuMs } = compiledFor!;
      return { ...report, figures: { error, deviceMs, cpuMs } };
    },
  },
  // The supervisor forks this program with a message channel, so `process` has all methods of `Channel`.
  process as Channel,
);
