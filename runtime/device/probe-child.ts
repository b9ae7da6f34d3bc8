import { InferenceSession, Tensor } from 'onnxruntime-node';
import type { ProbeResult } from './probe.ts';

/** An ONNX model of 105 bytes: y = x · [[2, 0], [0, 2]] (opset 17). */
const MODEL = Buffer.from(
  'CAgSADpdChEKAXgKAXcSAXkiBk1hdE11bBIBZyobCAIIAhABQgF3ShAAAABAAAAAAAAAAAAAAABAWhMKAXgSDgoMCAESCAoCCAIKAggCYhMKAXkSDgoMCAESCAoCCAIKAggCQgQKABAR',
  'base64',
);

async function probe(provider: string): Promise<ProbeResult> {
  try {
    const session = await InferenceSession.create(MODEL, {
      executionProviders: [provider],
      logSeverityLevel: 4,
      extra: { session: { disable_cpu_ep_fallback: provider === 'cpu' ? '0' : '1' } },
    });
    const { y } = await session.run({ x: new Tensor('float32', [1, 2, 3, 4], [2, 2]) });
    const right = y !== undefined && [2, 4, 6, 8].every((value, i) => y.data[i] === value);
    return right ? { works: true } : { works: false, reason: 'it gives a wrong product' };
  } catch (error) {
    return { works: false, reason: (error as Error).message.split('\n')[0]?.slice(0, 300) ?? 'unknown' };
  }
}

process.send?.(await probe(process.argv[2] ?? 'cpu'));
