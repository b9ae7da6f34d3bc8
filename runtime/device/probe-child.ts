import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { at } from '../../lib/at.ts';
import { messageOf } from '../../lib/errors.ts';
import { OrtEnvironment } from '../ort-plugin/environment.ts';
import { identityOf, openDevice } from '../ort-plugin/open-device.ts';
import type { PluginTarget } from '../ort-plugin/plugin-target.ts';
import type { Probe, ProbeResult } from './probe.ts';

/** ONNX model of 105 bytes that computes y = x · [[2, 0], [0, 2]] (opset 17). */
const MODEL = Buffer.from(
  'CAgSADpdChEKAXgKAXcSAXkiBk1hdE11bBIBZyobCAIIAhABQgF3ShAAAABAAAAAAAAAAAAAAABAWhMKAXgSDgoMCAESCAoCCAIKAggCYhMKAXkSDgoMCAESCAoCCAIKAggCQgQKABAR',
  'base64',
);
const DOUBLED = [2, 4, 6, 8];

async function probeBinding(provider: string): Promise<ProbeResult> {
  const session = await InferenceSession.create(MODEL, {
    executionProviders: [provider],
    logSeverityLevel: 4,
    extra: { session: { disable_cpu_ep_fallback: provider === 'cpu' ? '0' : '1' } },
  });
  const { y } = await session.run({ x: new Tensor('float32', [1, 2, 3, 4], [2, 2]) });
  return verdict([...(y?.data ?? [])].map(Number));
}

async function probePlugin(target: PluginTarget): Promise<ProbeResult> {
  const device = await openDevice(target);
  const folder = mkdtempSync(join(tmpdir(), 'assay-probe-'));
  try {
    const file = join(folder, 'doubling.onnx');
    writeFileSync(file, MODEL);
    const session = await device.session(file);
    const [x, y] = [Float32Array.of(1, 2, 3, 4), new Float32Array(4)];
    await session.run([{ name: 'x', data: x, dims: [2, 2] }], [{ name: 'y', data: y, dims: [2, 2] }]);
    const result = verdict([...y]);
    return result.works ? { works: true, identity: identityOf(target, device.device) } : result;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Tells whether a device doubled the input correctly, within 16-bit precision. */
function verdict(product: readonly number[]): ProbeResult {
  const right = DOUBLED.every((value, at) => Math.abs((product[at] ?? Number.NaN) - value) < 0.01);
  return right ? { works: true } : { works: false, reason: 'it gives a wrong product' };
}

async function answer(probe: Probe): Promise<unknown> {
  try {
    if (probe.kind === 'hardware') return (await OrtEnvironment.open()).hardware();
    return await (probe.kind === 'plugin' ? probePlugin(probe.target) : probeBinding(probe.provider));
  } catch (error) {
    return { works: false, reason: messageOf(error).split('\n')[0]?.slice(0, 300) ?? 'unknown' };
  }
}

// A cast: the parent process (`probe.ts`) wrote the argument.
process.send?.(await answer(JSON.parse(at(process.argv, 2)) as Probe));
