import * as v from 'valibot';
import { environmentFor, type PluginTarget } from '../ort-plugin/plugin-target.ts';
import { Child, childEntry } from '../process/child.ts';
import { type Accelerator, vendorOf } from './hardware.ts';

/**
 * Reports that a device computed correctly, or the reason why it did not. `identity` names the plugin, the chip and the
 * driver; absent for providers inside onnxruntime-node.
 */
export type ProbeResult = { works: true; identity?: string } | { works: false; reason: string };

/**
 * Describes the task of the probe process: run a small model with a provider inside onnxruntime-node or on a plugin's
 * device, or list the hardware.
 */
export type Probe =
  | { kind: 'binding'; provider: string }
  | { kind: 'plugin'; target: PluginTarget }
  | { kind: 'hardware' };

const PROBE = childEntry('./probe-child', import.meta.url);

interface ProbeOptions {
  /** Module that the process runs; tests pass their own. */
  entry?: URL;
  /** Milliseconds without an answer, in processor time where the system reports it (`SilenceClock`). */
  limitMs?: number;
}
const LIMIT_MS = 30_000;
/** Number of checks within the limit. */
const CHECKS = 20;

/**
 * Tests a provider inside onnxruntime-node with a small MatMul that must not fall back to the CPU. Never rejects: if
 * the probe's process crashes, or gives no answer for `limitMs` (default: 30 s), resolves to the reason.
 */
export function probeProvider(provider: string, options?: ProbeOptions): Promise<ProbeResult> {
  return ask({ kind: 'binding', provider }, (reason) => ({ works: false, reason }), options);
}

/**
 * Tests a plugin with a small MatMul on its device. Never rejects: if the probe's process crashes, or gives no answer
 * for 30 s, resolves to the reason.
 */
export function probePlugin(target: PluginTarget): Promise<ProbeResult> {
  return ask({ kind: 'plugin', target }, (reason) => ({ works: false, reason }));
}

/**
 * Lists the accelerators that onnxruntime finds itself: NPUs and GPUs on Windows, fewer on other systems. Returns null
 * if the list cannot be read.
 */
export async function listRuntimeHardware(): Promise<readonly Accelerator[] | null> {
  const found = await ask<{ hardware: string; vendorId: number }[] | null>({ kind: 'hardware' }, () => null);
  if (!Array.isArray(found)) return null;
  return found.flatMap(({ hardware, vendorId }) =>
    hardware === 'NPU' || hardware === 'GPU' ? [{ kind: hardware, vendor: vendorOf(vendorId), driver: 'system' }] : [],
  );
}

/**
 * Runs a probe in a separate process, because an incomplete driver may crash the process that loads it. Resolves to
 * `failed(reason)` if the process ends or does not answer.
 */
function ask<T>(
  probe: Probe,
  failed: (reason: string) => T,
  { entry = PROBE, limitMs = LIMIT_MS }: ProbeOptions = {},
): Promise<T> {
  return new Promise((resolve) => {
    const child = new Child<never, T>(
      {
        entry,
        args: [JSON.stringify(probe)],
        environment: probe.kind === 'plugin' ? environmentFor(probe.target, process.env) : {},
        // The program is this package's own, and holds no untrusted file.
        received: v.custom<T>(() => true),
        watchMs: limitMs / CHECKS,
      },
      {
        message(result) {
          resolve(result);
          child.kill('has answered');
        },
        exit: (reason, silent) => resolve(failed(silent ? `it ${reason}` : `the driver's process ${reason}`)),
      },
    );
    child.limitSilence({ ms: limitMs, failedTo: 'did not answer' });
  });
}
