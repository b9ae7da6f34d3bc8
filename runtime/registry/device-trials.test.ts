import { expect, it } from 'vitest';
import { DeviceTrials } from './device-trials.ts';

const used = { device: 'NPU', used: true, reason: 'fast', figures: null } as const;

it('excludes a device that failed, also in later loads', () => {
  const trials = new DeviceTrials(['NPU', 'GPU', 'CPU']);
  expect(trials.next).toBe('NPU');
  trials.add([used]);
  trials.fail('NPU', 'the driver is gone');
  expect(trials.decisions).toEqual([{ ...used, used: false, reason: 'the driver is gone' }]);
  trials.begin();
  expect(trials).toMatchObject({ decisions: [], next: 'GPU', failed: new Set(['NPU']) });
});

it('ends with the CPU', () => {
  const trials = new DeviceTrials(['GPU', 'CPU']);
  trials.fail('GPU', 'no memory');
  trials.fail('CPU', 'no memory');
  expect(trials.next).toBe('CPU');
});
