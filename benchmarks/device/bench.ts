import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { assayHome } from '../../adapters/node/config.ts';
import { DEVICE_TABLE } from '../../runtime/device/device-table.ts';
import { targetOf } from '../../runtime/device/resolve-devices.ts';
import { environmentFor, type PluginTarget } from '../../runtime/ort-plugin/plugin-target.ts';
import { PluginStore } from '../../runtime/plugins/plugin-store.ts';
import type { Report } from '../report.ts';
import type { DeviceWork } from './child.ts';

/**
 * Measures workload W on a GPU or NPU and on the CPU's packed path, in turn, with the same 4-bit weights. Needs an
 * installed plugin (`assay ep install`). Arguments: `--plugin=cuda --device=GPU --model=qwen2.5-0.5b|starter
 * --tasks=1,16,64 --runs=3 --home=<ASSAY_HOME>`.
 */
export async function run(report: Report, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      plugin: { type: 'string', default: 'cuda' },
      device: { type: 'string', default: 'GPU' },
      model: { type: 'string', default: 'qwen2.5-0.5b' },
      tasks: { type: 'string', default: '1,16,64' },
      runs: { type: 'string', default: '3' },
      home: { type: 'string' },
    },
  });
  const { model, runs } = values;
  const plugin = await pluginFor(values);
  const work: DeviceWork = { plugin, model, tasks: values.tasks.split(',').map(Number), runs: Number(runs) };
  const child = fork(fileURLToPath(new URL('child.ts', import.meta.url)), [JSON.stringify(work)], {
    env: { ...process.env, ...environmentFor(plugin, process.env) },
  });
  // A cast: the child process is this benchmark's own program.
  child.on('message', (figure) => report(figure as Parameters<Report>[0]));
  const [code, signal] = await once(child, 'exit');
  if (code !== 0) throw new Error(`The process that measures ended (${signal ?? code})`);
}

async function pluginFor(wanted: { plugin: string; device: string; home?: string | undefined }): Promise<PluginTarget> {
  const row = DEVICE_TABLE.find(({ plugin, device }) => plugin === wanted.plugin && device === wanted.device);
  const home = assayHome(wanted.home === undefined ? {} : { home: wanted.home }, process.env);
  const installed = (await new PluginStore(home).list()).find(({ plugin }) => plugin.name === wanted.plugin);
  if (row && installed) return targetOf(row, installed);
  throw new Error(`No plugin ${wanted.plugin} for a ${wanted.device}. Install it: assay ep install ${wanted.plugin}`);
}
