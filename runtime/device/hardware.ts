import { readdir, readFile, readlink } from 'node:fs/promises';
import { totalmem } from 'node:os';

/** Describes a GPU or NPU of this machine, which could run a model. */
export interface Accelerator {
  kind: 'GPU' | 'NPU';
  vendor: 'NVIDIA' | 'AMD' | 'Intel' | 'Qualcomm' | 'other';
  /** Name of the driver in use; null if the device has none. */
  driver: string | null;
}

/** Names the folders in which Linux lists devices. Tests pass their own. */
export interface DeviceFolders {
  pci: string;
  /** Folder of accelerators whose driver is of the kernel's `accel` class. */
  accel: string;
  /** Folder of device files. */
  dev: string;
}

const LINUX: DeviceFolders = { pci: '/sys/bus/pci/devices', accel: '/sys/class/accel', dev: '/dev' };

/** Vendor of each PCI vendor id (PCI ID Repository). */
const VENDORS: Readonly<Record<string, Accelerator['vendor']>> = {
  '0x10de': 'NVIDIA',
  '0x1002': 'AMD',
  '0x1022': 'AMD',
  '0x8086': 'Intel',
  '0x17cb': 'Qualcomm',
};

/** Returns the vendor with a PCI vendor id; `other` if it is unknown. */
export function vendorOf(id: number): Accelerator['vendor'] {
  return VENDORS[`0x${id.toString(16).padStart(4, '0')}`] ?? 'other';
}

/**
 * Returns the accelerators that Linux lists, with or without a driver; null on systems without these lists. PCI class
 * 03 is a display controller, 12 a processing accelerator (PCI Code and ID Assignment, 1.12); AMD's NPU reports itself
 * as a signal processor (1180). Accelerators inside a chip are not on the PCI bus: they are in the kernel's `accel`
 * class, and the driver of Qualcomm's DSP creates a device file.
 */
export async function listAccelerators({
  pci,
  accel,
  dev,
}: DeviceFolders = LINUX): Promise<readonly Accelerator[] | null> {
  const addresses = await readdir(pci).catch(() => null);
  const classed = await readdir(accel).catch(() => []);
  const files = await readdir(dev).catch(() => []);
  if (addresses === null && classed.length === 0) return null;
  const onBus = (addresses ?? []).sort().map(async (name): Promise<Accelerator | null> => {
    const { code, vendor, driver } = await readDevice(`${pci}/${name}`);
    if (/^0x03/.test(code)) return { kind: 'GPU', vendor, driver };
    if (/^0x12/.test(code) || (vendor === 'AMD' && /^0x1180/.test(code))) return { kind: 'NPU', vendor, driver };
    return null;
  });
  const inChip = classed.sort().map(async (name): Promise<Accelerator | null> => {
    const address = await readlink(`${accel}/${name}/device`).catch(() => '');
    if (addresses?.includes(address.split('/').at(-1) ?? '')) return null;
    const { vendor, driver } = await readDevice(`${accel}/${name}/device`);
    return { kind: 'NPU', vendor, driver };
  });
  const dsp = files.some((name) => name.startsWith('fastrpc-cdsp'));
  const found = [...(await Promise.all([...onBus, ...inChip])), dsp ? QUALCOMM_DSP : null];
  return found.filter((entry) => entry !== null);
}

const QUALCOMM_DSP: Accelerator = { kind: 'NPU', vendor: 'Qualcomm', driver: 'fastrpc' };

async function readDevice(
  folder: string,
): Promise<{ code: string; vendor: Accelerator['vendor']; driver: string | null }> {
  const read = (file: string): Promise<string> =>
    readFile(`${folder}/${file}`, 'utf8').then(
      (text) => text.trim(),
      () => '',
    );
  const driver = /^DRIVER=(.+)$/m.exec(await read('uevent'))?.[1] ?? null;
  return { code: await read('class'), vendor: VENDORS[await read('vendor')] ?? 'other', driver };
}

/**
 * Returns the bytes of memory that this process may use: those of the machine or, if smaller, of its container's limit.
 */
export function availableMemory(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(totalmem(), constrained) : totalmem();
}
