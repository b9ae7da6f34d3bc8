import { OrtEnvironment } from '../../runtime/ort-plugin/environment.ts';

const INTEL = 0x8086;

/**
 * Overwrites the vendor of the CPU in onnxruntime's memory: Intel's plugin accepts the CPU of no other vendor, and most
 * test machines have another. Only for tests, and before the plugin is registered.
 */
export async function pretendIntel(): Promise<void> {
  const { default: koffi } = await import('koffi');
  const env = await OrtEnvironment.open();
  const cpu = env.devices().find(({ hardware }) => hardware === 'CPU')!;
  // `struct OrtHardwareDevice { OrtHardwareDeviceType type; uint32_t vendor_id; …` (onnxruntime 1.30, abi_devices.h)
  koffi.encode(env.api.value('EpDevice_Device', cpu.handle), 4, 'uint32_t', INTEL);
  const now = env.devices().find(({ hardware }) => hardware === 'CPU')!;
  env.release();
  if (now.vendorId !== INTEL) throw new Error('the layout of OrtHardwareDevice has changed');
}
