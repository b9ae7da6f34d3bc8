import type { Device } from '../../lib/backend.ts';
import type { DeviceDecision } from '../../lib/models/host.ts';
import type { DeviceFigures } from '../../lib/schema/device-figures.ts';

/**
 * Largest accepted error of a device's logits against the CPU's (`logitError`: their difference as a share of the
 * logits' deviation from their mean). Measured on small models: 0.001 to 0.02 in 16 bits; 0.06 if the CPU rounds
 * activations to 8 bits and the device does not; 1.1 for wrongly computed rotary embeddings.
 */
export const DEVICE_TOLERANCE = 0.2;

/**
 * Decides from the measurements of a compile whether to use the device. An error above `DEVICE_TOLERANCE`, or one that
 * is not a number (null), always refuses it. Being slower than the CPU refuses it only if the user did not name the
 * device (`automatic`).
 */
export function judge(device: Device, figures: DeviceFigures, { automatic }: { automatic: boolean }): DeviceDecision {
  const { error, deviceMs, cpuMs } = figures;
  const times = `${shown(deviceMs)} ms where the CPU takes ${shown(cpuMs)} ms`;
  const decision = (used: boolean, reason: string): DeviceDecision => ({ device, used, reason, figures });
  // Written so that null, an error that is not a number, fails too.
  if (!(error !== null && error <= DEVICE_TOLERANCE)) {
    const difference =
      error === null
        ? 'are not numbers'
        : `differ from the CPU's by ${shown(error)} of their spread (at most ${DEVICE_TOLERANCE})`;
    return decision(false, `The ${device}'s logits ${difference}.`);
  }
  if (automatic && deviceMs > cpuMs) {
    return decision(false, `The ${device} takes ${times}; --device ${device.toLowerCase()} uses it anyway.`);
  }
  return decision(true, `The ${device} takes ${times}, and its logits differ by ${shown(error)} of their spread.`);
}

/** Formats a number with two significant digits, the precision of a measurement. */
const shown = (value: number): string => String(Number(value.toPrecision(2)));
