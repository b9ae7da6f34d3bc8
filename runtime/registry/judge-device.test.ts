import { describe, expect, it } from 'vitest';
import { judge } from './judge-device.ts';

describe('the judge', () => {
  it.each<[string, Parameters<typeof judge>[1], boolean, boolean, RegExp]>([
    ['faster and right', { error: 0.01, deviceMs: 20, cpuMs: 50 }, true, true, /takes 20 ms where the CPU takes 50 ms/],
    ['slower', { error: 0.01, deviceMs: 60, cpuMs: 50 }, true, false, /60 ms.*--device npu/],
    ['slower, asked for', { error: 0.01, deviceMs: 60, cpuMs: 50 }, false, true, /60 ms/],
    ['wrong', { error: 0.5, deviceMs: 2, cpuMs: 50 }, false, false, /differ from the CPU's by 0\.5 .*at most 0\.2/],
    ['no numbers', { error: null, deviceMs: 2, cpuMs: 50 }, false, false, /are not numbers/],
    ['slow as an emulator', { error: 0.01, deviceMs: 23_456, cpuMs: 50 }, false, true, /takes 23000 ms/],
  ])('%s', (_, figures, automatic, used, reason) => {
    expect(judge('NPU', figures, { automatic })).toMatchObject({
      used,
      reason: expect.stringMatching(reason),
      figures,
    });
  });
});
