import { type CApi, loadCApi, type Pointer } from './c-api.ts';

/** Kinds of hardware, in the order of the enumeration `OrtHardwareDeviceType`. */
const HARDWARE_TYPES = ['CPU', 'GPU', 'NPU'] as const;
export type HardwareType = (typeof HARDWARE_TYPES)[number];

/** Describes a device on which an execution provider can run a model. */
export interface EpDevice {
  /** Name of the execution provider. */
  provider: string;
  providerVendor: string;
  hardware: HardwareType;
  vendor: string;
  vendorId: number;
  deviceId: number;
  /** Metadata that the provider reports, such as the version of its driver. */
  metadata: Readonly<Record<string, string>>;
  /** Metadata that the operating system reports. */
  hardwareMetadata: Readonly<Record<string, string>>;
  /** Native handle (`OrtEpDevice *`), valid while the plugin is registered. */
  handle: Pointer;
}

/**
 * Represents this process's onnxruntime environment, which onnxruntime-node uses as well, and in which plugins are
 * registered.
 */
export class OrtEnvironment {
  readonly api: CApi;
  readonly handle: Pointer;

  private constructor(api: CApi, handle: Pointer) {
    this.api = api;
    this.handle = handle;
  }

  /**
   * Opens the environment. Every environment that was opened must be released once. Throws `OrtError` if onnxruntime's
   * version is not `ORT_VERSION` or it cannot create the environment, and koffi's error if koffi or the library does
   * not load.
   */
  static async open(): Promise<OrtEnvironment> {
    const api = await loadCApi();
    const WARNING = 2;
    return new OrtEnvironment(api, api.pointer('CreateEnv', WARNING, 'assay'));
  }

  /**
   * Loads and registers a plugin's library. Throws `OrtError` for a file that is not a plugin, that does not load, or
   * that is already registered.
   */
  register(name: string, library: string): void {
    this.api.call('RegisterExecutionProviderLibrary', this.handle, name, library);
  }

  /**
   * Unregisters and unloads a plugin. Its sessions must have been released. Throws `OrtError` if no plugin is
   * registered under the name.
   */
  unregister(name: string): void {
    this.api.call('UnregisterExecutionProviderLibrary', this.handle, name);
  }

  /** Lists every device of every registered provider, including those of onnxruntime itself. */
  devices(): EpDevice[] {
    const { api } = this;
    return api.pointers('GetEpDevices', this.handle).map((handle) => {
      const device: Pointer = api.value('EpDevice_Device', handle);
      return {
        provider: api.value('EpDevice_EpName', handle),
        providerVendor: api.value('EpDevice_EpVendor', handle),
        hardware: HARDWARE_TYPES[api.value<number>('HardwareDevice_Type', device)] ?? 'CPU',
        vendor: api.value('HardwareDevice_Vendor', device),
        vendorId: api.value('HardwareDevice_VendorId', device),
        deviceId: api.value('HardwareDevice_DeviceId', device),
        metadata: this.#pairs(api.value('EpDevice_EpMetadata', handle)),
        hardwareMetadata: this.#pairs(api.value('HardwareDevice_Metadata', device)),
        handle,
      };
    });
  }

  /** Lists the CPUs, GPUs and NPUs that onnxruntime finds on this machine, even those that no provider supports. */
  hardware(): { hardware: HardwareType; vendor: string; vendorId: number }[] {
    const { api } = this;
    const count: [number | bigint] = [0];
    api.call('GetNumHardwareDevices', this.handle, count);
    const found: Pointer[] = Array.from({ length: Number(count[0]) }, () => null);
    api.call('GetHardwareDevices', this.handle, found, found.length);
    return found.map((device) => ({
      hardware: HARDWARE_TYPES[api.value<number>('HardwareDevice_Type', device)] ?? 'CPU',
      vendor: api.value('HardwareDevice_Vendor', device),
      vendorId: api.value('HardwareDevice_VendorId', device),
    }));
  }

  release(): void {
    this.api.value('ReleaseEnv', this.handle);
  }

  #pairs(list: Pointer): Record<string, string> {
    if (!list) return {};
    const { api } = this;
    const [keys, values, count]: [[Pointer], [Pointer], [number | bigint]] = [[null], [null], [0]];
    api.value('GetKeyValuePairs', list, keys, values, count);
    const at = (array: Pointer, index: number): string => api.string(api.pointerAt(array, index));
    return Object.fromEntries(
      Array.from({ length: Number(count[0]) }, (_, index) => [at(keys[0], index), at(values[0], index)]),
    );
  }
}
