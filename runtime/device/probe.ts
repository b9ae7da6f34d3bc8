import { fork } from 'node:child_process';
import type { PluginTarget } from '../ort-plugin/plugin-target.ts';
import { type Accelerator, vendorOf } from './hardware.ts';
import { NO_TELEMETRY } from './no-telemetry.ts';

/**
 * Describes the result of running something on a device; `identity` names a plugin's device, its chip and its driver.
 */
export type ProbeResult = { works: true; identity?: string } | { works: false; reason: string };

/**
 * Describes the task of the probe process: compute on a provider of onnxruntime-node or on a plugin's device, or list
 * hardware.
 */
export type Probe =
  | { kind: 'binding'; provider: string }
  | { kind: 'plugin'; target: PluginTarget }
  | { kind: 'hardware' };

const PROBE = new URL(`./probe-child${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);
const LIMIT_MS = 30_000;

/** Runs a two by two product on a provider of onnxruntime-node, with no way to fall back to the CPU. */
export function probeProvider(provider: string): Promise<ProbeResult> {
  return ask({ kind: 'binding', provider }, (reason) => ({ works: false, reason }));
}

/** Registers a plugin and runs the product on its device. */
export function probePlugin(target: PluginTarget): Promise<ProbeResult> {
  return ask({ kind: 'plugin', target }, (reason) => ({ works: false, reason }));
}

/**
 * Lists the accelerators that onnxruntime finds by itself: NPUs and GPUs on Windows, less on other systems. Null when
 * it lists none.
 */
export async function listRuntimeHardware(): Promise<readonly Accelerator[] | null> {
  const found = await ask<{ hardware: string; vendorId: number }[] | null>({ kind: 'hardware' }, () => null);
  if (!Array.isArray(found)) return null;
  return found.flatMap(({ hardware, vendorId }) =>
    hardware === 'NPU' || hardware === 'GPU' ? [{ kind: hardware, vendor: vendorOf(vendorId), driver: 'system' }] : [],
  );
}

/** Asks a separate process, because an incomplete driver may end the process that loads it. */
function ask<T>(probe: Probe, failed: (reason: string) => T): Promise<T> {
  return new Promise((resolve) => {
    const child = fork(PROBE, [JSON.stringify(probe)], {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      execArgv: [],
      env: { ...process.env, ...NO_TELEMETRY },
    });
    const timer = setTimeout(() => end(failed('it did not answer for 30 s')), LIMIT_MS);
    const end = (result: T): void => {
      clearTimeout(timer);
      child.kill('SIGKILL');
      resolve(result);
    };
    // The child is this package's own program.
    child.once('message', (message) => end(message as T));
    child.once('error', (error) => end(failed(error.message)));
    child.once('exit', (code, signal) => end(failed(`the driver ended the process (${signal ?? code})`)));
  });
}
