import type { Device } from '../../lib/backend.ts';
import type { DeviceDecision } from '../../lib/host.ts';
import type { DeviceFigures } from '../../lib/schema/device-figures.ts';

/**
 * The most that a device's logits may differ from the CPU's, as a share of their spread. Measured on small models:
 * 0.001 to 0.02 in 16 bits, 0.06 where the CPU rounds activations to 8 bits and the device does not; a rotation that
 * was computed wrongly 1.1.
 */
export const DEVICE_TOLERANCE = 0.2;

/**
 * Judges a device by what it was measured to do: wrong numbers refuse it always, slowness only where nobody asked for
 * the device.
 */
export function judge(device: Device, figures: DeviceFigures, { automatic }: { automatic: boolean }): DeviceDecision {
  const { error, deviceMs, cpuMs } = figures;
  const times = `${shown(deviceMs)} ms where the CPU takes ${shown(cpuMs)} ms`;
  const decision = (used: boolean, reason: string): DeviceDecision => ({ device, used, reason, figures });
  // Written so that null, for no number, fails too.
  if (!(error !== null && error <= DEVICE_TOLERANCE)) {
    const difference =
      error === null
        ? 'are no numbers'
        : `differ from the CPU's by ${shown(error)} of their spread (at most ${DEVICE_TOLERANCE})`;
    return decision(false, `The ${device}'s logits ${difference}.`);
  }
  if (automatic && deviceMs > cpuMs) {
    return decision(false, `The ${device} takes ${times}; --device ${device.toLowerCase()} uses it all the same.`);
  }
  return decision(true, `The ${device} takes ${times}, and its logits differ by ${shown(error)} of their spread.`);
}

/** Two digits, as many as a measurement tells. */
const shown = (value: number): string => String(Number(value.toPrecision(2)));
