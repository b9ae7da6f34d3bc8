import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { devicesToTry, providersOf } from './device-table.ts';
import { type DoctorEffects, examineDevices } from './doctor.ts';
import { type Accelerator, listAccelerators } from './hardware.ts';
import { probeProvider } from './probe.ts';

const NVIDIA: Accelerator = { kind: 'GPU', vendor: 'NVIDIA', driver: 'nvidia' };
const effects = (
  changes: Partial<DoctorEffects> & { working?: readonly string[]; reason?: string },
): DoctorEffects => ({
  platform: 'linux-x64',
  choice: 'auto',
  accelerators: [],
  probe: async (provider) =>
    (changes.working ?? ['cpu']).includes(provider)
      ? { works: true }
      : { works: false, reason: changes.reason ?? 'Failed to load shared library' },
  ...changes,
});
const shortly = async (changes: Parameters<typeof effects>[0]) =>
  (await examineDevices(effects(changes))).map(({ name, state }) => `${name}: ${state}`);

describe('the doctor', () => {
  it.each<[string, Parameters<typeof effects>[0], string[]]>([
    ['a server without accelerators', {}, ['NVIDIA GPU (CUDA): absent', 'GPU (WebGPU): absent', 'CPU: in use']],
    [
      'an NVIDIA GPU without the CUDA files',
      { accelerators: [NVIDIA] },
      ['NVIDIA GPU (CUDA): blocked', 'GPU (WebGPU): blocked', 'CPU: in use'],
    ],
    [
      'an NVIDIA GPU that works',
      { accelerators: [NVIDIA], working: ['cpu', 'cuda'] },
      ['NVIDIA GPU (CUDA): works', 'GPU (WebGPU): blocked', 'CPU: in use'],
    ],
    [
      'the same, asked for',
      { accelerators: [NVIDIA], working: ['cpu', 'cuda'], choice: 'gpu' },
      ['NVIDIA GPU (CUDA): in use', 'GPU (WebGPU): blocked', 'CPU: works'],
    ],
    [
      'one asked for that does not work',
      { accelerators: [NVIDIA], choice: 'gpu' },
      ['NVIDIA GPU (CUDA): blocked', 'GPU (WebGPU): blocked', 'CPU: in use'],
    ],
    [
      'an Intel NPU',
      { accelerators: [{ kind: 'NPU', vendor: 'Intel', driver: 'intel_vpu' }] },
      ['NVIDIA GPU (CUDA): absent', 'GPU (WebGPU): absent', 'CPU: in use', 'Intel NPU: unsupported'],
    ],
    [
      'a Mac',
      { platform: 'darwin-arm64', accelerators: null, working: ['cpu', 'coreml', 'webgpu'] },
      ['Apple Neural Engine (CoreML): works', 'GPU (WebGPU): works', 'CPU: in use'],
    ],
  ])('%s', async (_name, changes, expected) => {
    expect(await shortly(changes)).toEqual(expected);
  });

  it('names the exact command where there is one', async () => {
    const cuda = (await examineDevices(effects({ accelerators: [NVIDIA] })))[0];
    expect(cuda?.command).toBe(
      'node node_modules/onnxruntime-node/script/install.js --onnxruntime-node-install=cuda12',
    );
    const driverless = await examineDevices(effects({ accelerators: [{ ...NVIDIA, driver: null }] }));
    expect(driverless[0]).toMatchObject({ state: 'blocked', why: 'the system has no driver for the NVIDIA GPU' });
  });
});

describe('devices to try', () => {
  it.each([
    ['auto', 'linux-x64', ['CPU']],
    ['gpu', 'linux-x64', ['GPU', 'CPU']],
    ['npu', 'darwin-arm64', ['NPU', 'CPU']],
    ['cpu', 'darwin-arm64', ['CPU']],
  ] as const)('%s on %s: %j', (choice, platform, devices) => {
    expect(devicesToTry(choice, platform)).toEqual(devices);
  });

  it('have their providers, the best first', () => {
    expect(providersOf('GPU', 'linux-x64')).toEqual(['cuda', 'webgpu']);
    expect(providersOf('NPU', 'linux-x64')).toEqual([]);
  });
});

it('a probe computes on the CPU and tells why another provider does not', async () => {
  expect(await probeProvider('cpu')).toEqual({ works: true });
  expect(await probeProvider('nonsense')).toEqual({ works: false, reason: expect.stringContaining('nonsense') });
});

it('accelerators are read from the PCI bus', async () => {
  const root = await mkdtemp(join(tmpdir(), 'assay-pci-'));
  const put = async (name: string, files: Record<string, string>): Promise<void> => {
    await mkdir(join(root, name));
    for (const [file, text] of Object.entries(files)) await writeFile(join(root, name, file), `${text}\n`);
  };
  await put('gpu', { class: '0x030200', vendor: '0x10de', uevent: 'DRIVER=nvidia\nPCI_CLASS=30200' });
  await put('npu', { class: '0x120000', vendor: '0x8086', uevent: 'PCI_CLASS=120000' });
  await put('disk', { class: '0x010802', vendor: '0x8086', uevent: 'DRIVER=nvme' });
  expect(await listAccelerators(root)).toEqual([NVIDIA, { kind: 'NPU', vendor: 'Intel', driver: null }]);
  expect(await listAccelerators(join(root, 'none'))).toBeNull();
});
