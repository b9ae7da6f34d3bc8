import { cpus, freemem, totalmem } from 'node:os';
import type { Command } from 'commander';
import { formatBytes } from '../../../../lib/format-bytes.ts';
import { parseModelId } from '../../../../lib/model-id.ts';
import type { Precision } from '../../../../lib/schema/precision.ts';
import { kernelFamily } from '../../../../runtime/compile/kernels.ts';
import { DEVICE_CHOICES } from '../../../../runtime/device/device-table.ts';
import { examineDevices } from '../../../../runtime/device/doctor.ts';
import { listAccelerators } from '../../../../runtime/device/hardware.ts';
import { listRuntimeHardware, probePlugin, probeProvider } from '../../../../runtime/device/probe.ts';
import { examineModel, type ModelExamination } from '../../../../runtime/hub/examine-model.ts';
import { openHub } from '../../../../runtime/hub/hub-client.ts';
import { PLATFORM } from '../../../../runtime/plugins/catalogue.ts';
import { PluginStore } from '../../../../runtime/plugins/plugin-store.ts';
import { judge } from '../../../../runtime/registry/judge-device.ts';
import { listAllCompiled } from '../../../../runtime/store/compiled-store.ts';
import { hubEnvironment } from '../../../../runtime/store/environment.ts';
import { StorePaths } from '../../../../runtime/store/paths.ts';
import { openIsolation } from '../../../../runtime/supervisor/isolation/isolation.ts';
import { COMMAND } from '../../command.ts';
import { assayHome, serverConfig } from '../../config.ts';
import { UsageError } from '../../usage-error.ts';
import { EXIT } from '../exit-code.ts';
import { screen } from '../screen.ts';

/** Adds the command `assay doctor`. */
export function addDoctor(program: Command): void {
  program
    .command('doctor')
    .description('Examine the devices of this machine: which work, which do not, why, and how to change that.')
    .option('--model <id>', 'instead, tell whether a model on the hub will run here, how, and with how much memory')
    .option('--json', 'print the findings as JSON')
    .addHelpText('after', DOCTOR_HELP)
    .action(async ({ json, model }: { json?: boolean; model?: string }) => {
      if (model !== undefined) return reportModel(model, json ?? false);
      const choice = DEVICE_CHOICES.find((one) => one === (process.env.ASSAY_DEVICE || 'auto'));
      if (!choice) throw new UsageError(`ASSAY_DEVICE must be one of ${DEVICE_CHOICES.join(', ')}.`);
      const platform = PLATFORM;
      const devices = await examineDevices({
        platform,
        choice,
        accelerators: (await listAccelerators()) ?? (await listRuntimeHardware()),
        installed: await new PluginStore(assayHome({}, process.env)).list(),
        probe: probeProvider,
        probePlugin,
      });
      const processors = cpus();
      const machine = {
        platform,
        node: process.version,
        cpu: processors[0]?.model.trim() ?? 'unknown',
        threads: processors.length,
        memory_bytes: totalmem(),
        free_memory_bytes: freemem(),
        kernels: kernelFamily(),
      };
      const models = await compiledPrecisions();
      const { layers: isolation } = await openIsolation(serverConfig({}, process.env).isolation);
      if (json) screen.json({ machine, devices, models, isolation });
      else {
        screen.line(`${machine.platform}, Node ${machine.node}, ${machine.cpu}, ${machine.threads} threads,`);
        screen.line(`${formatBytes(machine.memory_bytes)} of memory, ${formatBytes(machine.free_memory_bytes)} free,`);
        screen.line(`kernels for ${machine.kernels}`);
        for (const { device, name, state, why, command } of devices) {
          screen.line(`\n${device}  ${name}: ${state}\n     ${why}`);
          if (command) screen.line(`     → ${command}`);
        }
        for (const { model, precision, asked, why } of models) {
          screen.line(`\n${model}  ${precision} (--precision ${asked})\n     ${why}`);
        }
        screen.line('\nIsolation of the processes that run models (docs/security.md):');
        for (const { name, active, why, protectsFrom, notFrom } of isolation) {
          screen.line(`${name}: ${active ? 'on' : `off, ${why}`}`);
          screen.line(`     protects from ${protectsFrom}\n     not from ${notFrom}`);
        }
      }
      if (!devices.some(({ state }) => state === 'in use')) process.exitCode = EXIT.no;
    });
}

/** Reports whether and how a model on the hub will run on this machine. Sets exit code 1 if the model cannot run. */
async function reportModel(name: string, json: boolean): Promise<void> {
  const hub = await openHub(hubEnvironment());
  const { dtype } = serverConfig({}, process.env);
  const signal = new AbortController().signal;
  const found = await examineModel(hub, parseModelId(name), { device: 'CPU', ...(dtype ? { dtype } : {}), signal });
  if (json) screen.json(found);
  else for (const line of linesOf(found)) screen.line(line);
  if (found.refusal) process.exitCode = EXIT.no;
}

function linesOf({ model, refusal, mediaRefusal, contract, base, chosen }: ModelExamination): string[] {
  const lines = [refusal ? `${model} cannot run here: ${refusal}` : `${model} should run here`];
  if (contract) {
    const { name, version, temperature } = contract;
    lines.push(`     asked as ${name}${version ? ` (${version})` : ''}, temperature from ${temperature}`);
  }
  if (base) lines.push(`     an adapter of ${base}, which is fetched, too`);
  if (mediaRefusal) lines.push(`     text only: ${mediaRefusal}`);
  if (!chosen) return lines;
  const { graph, dtype, path, downloadBytes, memoryBytes } = chosen;
  const how = path
    ? 'branches run side by side'
    : 'branches run side by side if its attention is fused, otherwise one by one';
  lines.push(`     ${graph}${dtype ? ` (${dtype})` : ''}, ${formatBytes(downloadBytes)} to download; ${how}`);
  const free = `this machine has ${formatBytes(totalmem())}, ${formatBytes(freemem())} free`;
  if (memoryBytes) {
    lines.push(`     memory: about ${formatBytes(memoryBytes)}, in 8 bits with a prompt of 4,096 tokens; ${free}`);
    if (memoryBytes > totalmem()) lines.push('     → that is more than this machine has: choose a smaller model');
  }
  if (!refusal) lines.push(`     → ${COMMAND} pull ${model}`);
  return lines;
}

/**
 * Returns the number format in which the weights of each compiled model run here, the one that was asked for, and why
 * it was chosen. A model that was compiled for several prompt lengths is listed once.
 */
async function compiledPrecisions(): Promise<{ model: string; precision: Precision; asked: string; why: string }[]> {
  const paths = new StorePaths({
    hubCache: hubEnvironment().hubCache,
    assayHome: assayHome({}, process.env),
    bundled: null,
  });
  const precisions = new Map<string, { model: string; precision: Precision; asked: string; why: string }>();
  for (const { model, record } of await listAllCompiled(paths)) {
    const { precision, choice, figures, fingerprint } = record;
    const { precision: asked, device, kernels } = fingerprint;
    const current = kernels === undefined || kernels === kernelFamily();
    if (!precision || !choice || !current) continue;
    const onDevice = figures ? ` ${judge(device, figures, { automatic: automatic(process.env) }).reason}` : '';
    const why = `${choice.reason}${onDevice}`;
    precisions.set(`${model} ${asked} ${device}`, { model, precision, asked, why });
  }
  return [...precisions.values()];
}

/** Tells whether Assay chooses the device: `ASSAY_DEVICE` is `auto` or not set. */
const automatic = ({ ASSAY_DEVICE }: NodeJS.ProcessEnv): boolean => (ASSAY_DEVICE || 'auto') === 'auto';

const DOCTOR_HELP = `
Shows three things: the devices, each tested with a small computation in a separate process; the compiled models in ASSAY_HOME, each
with its precision and why that precision and the device were chosen; and the layers that isolate the processes that run models
(ASSAY_ISOLATION). The exit code is 1 if no device works.

Examples:
  $ assay doctor --model onnx-community/Qwen3-0.6B-ONNX
  $ assay doctor --json | jq '.devices[] | select(.state == "in use")'`;
