import { readdir, readFile } from 'node:fs/promises';

/** A processor on the PCI bus that could run a model. */
export interface Accelerator {
  kind: 'GPU' | 'NPU';
  vendor: 'NVIDIA' | 'AMD' | 'Intel' | 'other';
  /** Whether a driver has taken it. */
  driver: string | null;
}

const PCI = '/sys/bus/pci/devices';
const VENDORS: Readonly<Record<string, Accelerator['vendor']>> = {
  '0x10de': 'NVIDIA',
  '0x1002': 'AMD',
  '0x1022': 'AMD',
  '0x8086': 'Intel',
};

/**
 * Accelerators that Linux sees, with or without a driver. PCI class 03 is a display controller, 12 a processing accelerator (PCI
 * Code and ID Assignment, 1.12); AMD's NPU calls itself a signal processor (1180). Null on systems that do not tell this way.
 */
export async function listAccelerators(root = PCI): Promise<readonly Accelerator[] | null> {
  const names = await readdir(root).catch(() => null);
  if (names === null) return null;
  const found = names.sort().map(async (name): Promise<Accelerator | null> => {
    const read = (file: string): Promise<string> =>
      readFile(`${root}/${name}/${file}`, 'utf8').then(
        (s) => s.trim(),
        () => '',
      );
    const code = await read('class');
    const vendor = VENDORS[await read('vendor')] ?? 'other';
    const uevent = await read('uevent');
    const driver = /^DRIVER=(.+)$/m.exec(uevent)?.[1] ?? null;
    if (/^0x03/.test(code)) return { kind: 'GPU', vendor, driver };
    if (/^0x12/.test(code) || (vendor === 'AMD' && /^0x1180/.test(code))) return { kind: 'NPU', vendor, driver };
    return null;
  });
  return (await Promise.all(found)).filter((entry) => entry !== null);
}
