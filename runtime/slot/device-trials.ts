import type { Device } from '../../lib/backend.ts';
import type { DeviceDecision } from '../../lib/host.ts';

/** Records which devices were tried for the model in the slot, and which devices failed to load any model. */
export class DeviceTrials {
  /** Devices of this machine, best first. The CPU is always the last. */
  readonly #devices: readonly Device[];
  readonly #failed = new Set<Device>();
  #decisions: readonly DeviceDecision[] = [];

  constructor(devices: readonly Device[]) {
    this.#devices = devices;
  }

  /** Devices that failed to load a model since the server started, and are not tried again. */
  get failed(): ReadonlySet<Device> {
    return this.#failed;
  }

  /** Decisions about the devices that the last load tried. */
  get decisions(): readonly DeviceDecision[] {
    return this.#decisions;
  }

  /** Device that the next load uses if it supports the model: the best one that has not failed. */
  get next(): Device {
    return this.#devices.find((device) => !this.#failed.has(device)) ?? 'CPU';
  }

  /** Forgets the decisions of the last load, because another load begins. Failed devices stay excluded. */
  begin(): void {
    this.#decisions = [];
  }

  add(decisions: readonly DeviceDecision[]): void {
    this.#decisions = [...this.#decisions, ...decisions];
  }

  /** Excludes a device from now on. `reason` replaces the earlier decision about it. */
  fail(device: Device, reason: string): void {
    this.#failed.add(device);
    const others = this.#decisions.filter((one) => one.device !== device);
    this.#decisions = [...others, { device, used: false, reason, figures: null }];
  }
}
