import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { at } from '../../lib/at.ts';
import { type EngineModel, openModel } from '../../runtime/engine/model.ts';
import type { PluginTarget } from '../../runtime/ort-plugin/plugin-target.ts';
import { compileForDevice } from '../../runtime/worker/compile-for-device.ts';
import { answer, engineOf, openForBenchmark, workload } from '../branches/workload.ts';
import { compiledBlockModel, compiledStarter } from '../models/cache.ts';
import { type Figure, median } from '../report.ts';

/** Describes what a child process measures. */
export interface DeviceWork {
  plugin: PluginTarget;
  model: string;
  tasks: number[];
  runs: number;
}

/** Sends a figure to the parent process. */
const report = (figure: Omit<Figure, 'bench'>) => process.send!(figure);

// Runs in its own process, whose environment lets the loader find the plugin's libraries: `node child.ts <work>`.
// A cast: the parent process (`bench.ts`) wrote the argument.
const { plugin, model, tasks, runs } = JSON.parse(at(process.argv, 2)) as DeviceWork;
const compiled = model === 'starter' ? compiledStarter : compiledBlockModel;
const cpu = await openForBenchmark(await compiled('packed'));
const folder = mkdtempSync(join(tmpdir(), 'assay-device-benchmark-'));
try {
  cpSync(await compiled('static'), folder, { recursive: true });
  const { compiledFor } = await compileForDevice(folder, plugin);
  const probe = { system: plugin.plugin, case: 'probe', unit: '' };
  report({ ...probe, metric: 'logit error', value: compiledFor?.error ?? Number.NaN });
  const device = await openModel(folder, { plugin });
  await compare(device);
  await device.close();
} finally {
  await cpu.close();
  rmSync(folder, { recursive: true, force: true });
}
process.disconnect();

async function compare(device: EngineModel): Promise<void> {
  await once(cpu, 2, 1);
  await once(device, 2, 1);
  for (const count of tasks) {
    const times: { cpu: number; device: number }[] = [];
    for (let seed = 2; seed < 2 + runs; seed++) {
      times.push({ device: await once(device, count, seed), cpu: await once(cpu, count, seed) });
    }
    const figure = { case: `${count} tasks`, metric: 'time', unit: 'ms' };
    report({ ...figure, system: 'CPU', value: median(times.map((one) => one.cpu)) });
    report({ ...figure, system: plugin.plugin, value: median(times.map((one) => one.device)) });
    const ratio = median(times.map((one) => one.device / one.cpu));
    report({ ...figure, system: plugin.plugin, metric: "of the CPU's time", value: ratio, unit: '' });
  }
}

/** Runs workload W on a model, and returns the milliseconds that it takes. */
async function once(on: EngineModel, count: number, seed: number): Promise<number> {
  /** Maps a token of W to this model's vocabulary, which may be smaller. */
  const within = (token: number): number => token % on.manifest.vocabSize;
  const { prefix, branches, ...job } = workload(count, seed);
  const own = branches.map((branch) => ({ ...branch, suffix: branch.suffix.map(within) }));
  return (await answer(engineOf(on), { ...job, prefix: prefix.map(within), branches: own })).ms;
}
