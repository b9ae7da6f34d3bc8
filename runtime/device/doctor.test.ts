import { mkdir, mkdtemp, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Device } from '../../lib/backend.ts';
import { pluginNamed } from '../plugins/catalogue.ts';
import type { InstalledPlugin } from '../plugins/plugin-store.ts';
import { type DeviceChoice, providersOf } from './device-table.ts';
import { type DoctorEffects, examineDevices } from './doctor.ts';
import { type Accelerator, listAccelerators } from './hardware.ts';
import { type ProbeResult, probeProvider } from './probe.ts';
import { DeviceResolver, type ResolveEffects } from './resolve-devices.ts';

const NVIDIA: Accelerator = { kind: 'GPU', vendor: 'NVIDIA', driver: 'nvidia' };
const INTEL: Accelerator = { kind: 'NPU', vendor: 'Intel', driver: 'intel_vpu' };
const OPENVINO: InstalledPlugin = {
  plugin: pluginNamed('openvino'),
  directory: '/home/plugins/openvino',
  library: '/home/plugins/openvino/plugin.so',
  libraryPath: [],
  bytes: 1,
  damage: null,
};
const CUDA: InstalledPlugin = { ...OPENVINO, plugin: pluginNamed('cuda') };

const effects = (changes: Partial<DoctorEffects> & { working?: readonly string[]; reason?: string }): DoctorEffects => {
  const result = (name: string): ProbeResult =>
    (changes.working ?? ['cpu']).includes(name)
      ? { works: true }
      : { works: false, reason: changes.reason ?? 'Failed to load shared library' };
  return {
    platform: 'linux-x64',
    choice: 'auto',
    accelerators: [],
    installed: [],
    probe: async (provider) => result(provider),
    probePlugin: async ({ hardware }) => result(`plugin ${hardware}`),
    ...changes,
  };
};
/** Returns the state of each device that is not absent. */
const shortly = async (changes: Parameters<typeof effects>[0]) =>
  (await examineDevices(effects(changes)))
    .filter(({ state }) => state !== 'absent')
    .map(({ name, state }) => `${name}: ${state}`);

describe('the doctor', () => {
  it.each<[string, Parameters<typeof effects>[0], string[]]>([
    ['a server without accelerators', {}, ['CPU: in use']],
    [
      'an NVIDIA GPU without its plugin',
      { accelerators: [NVIDIA] },
      ['NVIDIA GPU (CUDA): blocked', 'GPU (WebGPU): blocked', 'GPU (WebGPU plugin): blocked', 'CPU: in use'],
    ],
    [
      'an NVIDIA GPU with its plugin',
      { accelerators: [NVIDIA], installed: [CUDA], working: ['cpu', 'plugin GPU'] },
      ['NVIDIA GPU (CUDA): in use', 'GPU (WebGPU): blocked', 'GPU (WebGPU plugin): blocked', 'CPU: works'],
    ],
    [
      'the CPU asked for, beside an NVIDIA GPU',
      { accelerators: [NVIDIA], installed: [CUDA], working: ['cpu', 'plugin GPU'], choice: 'cpu' },
      ['NVIDIA GPU (CUDA): works', 'GPU (WebGPU): blocked', 'GPU (WebGPU plugin): blocked', 'CPU: in use'],
    ],
    ['an Intel NPU without its plugin', { accelerators: [INTEL] }, ['Intel NPU (OpenVINO): blocked', 'CPU: in use']],
    [
      'an Intel NPU with its plugin',
      { accelerators: [INTEL], installed: [OPENVINO], working: ['cpu', 'plugin NPU'] },
      ['Intel NPU (OpenVINO): in use', 'CPU: works'],
    ],
    [
      'an Intel NPU whose plugin does not work',
      { accelerators: [INTEL], installed: [OPENVINO], reason: 'finds no NPU' },
      ['Intel NPU (OpenVINO): blocked', 'CPU: in use'],
    ],
    [
      'the CPU asked for, beside an Intel NPU',
      { accelerators: [INTEL], installed: [OPENVINO], working: ['cpu', 'plugin NPU'], choice: 'cpu' },
      ['Intel NPU (OpenVINO): works', 'CPU: in use'],
    ],
    [
      'an AMD NPU',
      { accelerators: [{ kind: 'NPU', vendor: 'AMD', driver: 'amdxdna' }] },
      ['CPU: in use', 'AMD NPU: unsupported'],
    ],
    [
      'a Mac',
      { platform: 'darwin-arm64', accelerators: null, working: ['cpu', 'coreml', 'webgpu'] },
      ['Apple Neural Engine (CoreML): works', 'GPU (WebGPU): works', 'GPU (WebGPU plugin): blocked', 'CPU: in use'],
    ],
    [
      'Windows on Arm with a Qualcomm NPU',
      { platform: 'win32-arm64', accelerators: [{ kind: 'NPU', vendor: 'Qualcomm', driver: 'system' }] },
      ['Qualcomm Hexagon NPU (QNN): blocked', 'CPU: in use'],
    ],
  ])('%s', async (_name, changes, expected) => {
    expect(await shortly(changes)).toEqual(expected);
  });

  it.each<[string, Parameters<typeof effects>[0], string, object]>([
    [
      'a plugin that is not installed',
      { accelerators: [INTEL] },
      'Intel NPU (OpenVINO)',
      { why: 'its plugin is not installed', command: 'assay ep install openvino' },
    ],
    [
      'a plugin that is damaged',
      { accelerators: [INTEL], installed: [{ ...OPENVINO, damage: 'its file x is missing or changed' }] },
      'Intel NPU (OpenVINO)',
      { why: /damaged: its file x/, command: 'assay ep install openvino' },
    ],
    [
      'a plugin that does not compute',
      { accelerators: [INTEL], installed: [OPENVINO], reason: 'it gives a wrong product' },
      'Intel NPU (OpenVINO)',
      { why: 'it gives a wrong product', command: null },
    ],
    [
      'an NPU without a driver',
      { accelerators: [{ ...INTEL, driver: null }], installed: [OPENVINO] },
      'Intel NPU (OpenVINO)',
      { why: 'the system has no driver for the Intel NPU', command: /install the Intel NPU driver/ },
    ],
    [
      'a device that nobody lists',
      { platform: 'win32-x64', accelerators: null },
      'Intel NPU (OpenVINO)',
      { why: /^where this machine has one: its plugin/, command: 'assay ep install openvino' },
    ],
  ])('%s', async (_name, changes, name, expected) => {
    const found = (await examineDevices(effects(changes))).find((one) => one.name === name);
    const matching = Object.entries(expected).map(([key, value]) => [
      key,
      value instanceof RegExp ? expect.stringMatching(value) : value,
    ]);
    expect(found).toMatchObject({ state: 'blocked', ...Object.fromEntries(matching) });
  });

  it('names the exact command where there is one', async () => {
    const isCuda = ({ name }: { name: string }): boolean => name === 'NVIDIA GPU (CUDA)';
    const cuda = (await examineDevices(effects({ accelerators: [NVIDIA] }))).find(isCuda);
    expect(cuda?.command).toBe('assay ep install cuda');
    const driverless = await examineDevices(effects({ accelerators: [{ ...NVIDIA, driver: null }] }));
    expect(driverless.find(isCuda)).toMatchObject({
      state: 'blocked',
      why: 'the system has no driver for the NVIDIA GPU',
    });
  });
});

describe('devices to try', () => {
  const resolver = (choice: DeviceChoice, changes: Partial<ResolveEffects>): DeviceResolver =>
    new DeviceResolver(choice, {
      platform: 'linux-x64',
      accelerators: [],
      installed: [],
      probe: async () => ({ works: true, identity: 'Intel NPU, driver 1' }),
      ...changes,
    });

  it.each<[DeviceChoice, Partial<ResolveEffects>, Device[]]>([
    ['auto', {}, ['CPU']],
    ['gpu', {}, ['GPU', 'CPU']],
    ['cpu', { accelerators: [INTEL], installed: [OPENVINO] }, ['CPU']],
    ['npu', { platform: 'darwin-arm64', accelerators: null }, ['NPU', 'CPU']],
    ['auto', { accelerators: [INTEL] }, ['CPU']],
    ['auto', { accelerators: [NVIDIA], installed: [CUDA] }, ['GPU', 'CPU']],
    ['auto', { accelerators: [INTEL], installed: [OPENVINO] }, ['NPU', 'CPU']],
    ['auto', { installed: [OPENVINO] }, ['CPU']],
    ['auto', { accelerators: [INTEL], installed: [{ ...OPENVINO, damage: 'gone' }] }, ['CPU']],
    ['auto', { platform: 'win32-x64', accelerators: null, installed: [OPENVINO] }, ['NPU', 'GPU', 'CPU']],
  ])('%s, %j', (choice, changes, devices) => {
    expect(resolver(choice, changes).devices).toEqual(devices);
  });

  it('have a plugin, probed once', async () => {
    let probes = 0;
    const probe: ResolveEffects['probe'] = async () => ({ works: true, identity: `driver ${++probes}` });
    const found = resolver('npu', { accelerators: [INTEL], installed: [OPENVINO], probe });
    const expected = { identity: 'driver 1', target: { provider: 'OpenVINOExecutionProvider', hardware: 'NPU' } };
    expect(await found.plugin('NPU')).toMatchObject(expected);
    expect(await found.plugin('NPU')).toMatchObject(expected);
    expect(await found.plugin('CPU')).toBeNull();
  });

  it('without anything that drives them say what to do', async () => {
    await expect(resolver('npu', {}).plugin('NPU')).rejects.toThrow('Nothing on this machine drives its NPU. See');
    const probe: ResolveEffects['probe'] = async () => ({ works: false, reason: 'no device' });
    const failing = resolver('npu', { accelerators: [INTEL], installed: [OPENVINO], probe });
    await expect(failing.plugin('NPU')).rejects.toThrow('drives its NPU (Intel NPU (OpenVINO): no device)');
  });

  it.each<[DeviceChoice, string | null]>([
    ['auto', 'drives its GPU (NVIDIA GPU (CUDA): no libcuda.so.1)'],
    ['gpu', null],
  ])('with %s use the providers inside onnxruntime only if asked to', async (choice, refusal) => {
    const probe: ResolveEffects['probe'] = async () => ({ works: false, reason: 'no libcuda.so.1' });
    const found = resolver(choice, { accelerators: [NVIDIA], installed: [CUDA], probe }).plugin('GPU');
    if (refusal === null) expect(await found).toBeNull();
    else await expect(found).rejects.toThrow(refusal);
  });

  it('have their providers, the best first', () => {
    expect(providersOf('GPU', 'linux-x64')).toEqual(['webgpu']);
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
  await put('dsp', { class: '0x118000', vendor: '0x1022', uevent: 'DRIVER=amdxdna' });
  await put('disk', { class: '0x010802', vendor: '0x8086', uevent: 'DRIVER=nvme' });
  const folders = { pci: root, accel: join(root, 'none'), dev: join(root, 'none') };
  const onBus = [
    { kind: 'NPU', vendor: 'AMD', driver: 'amdxdna' },
    NVIDIA,
    { kind: 'NPU', vendor: 'Intel', driver: null },
  ];
  expect(await listAccelerators(folders)).toEqual(onBus);
  expect(await listAccelerators({ ...folders, pci: join(root, 'none') })).toBeNull();

  // Accelerators inside a chip are found in the kernel's `accel` class, or by the device file of Qualcomm's DSP. One
  // that is also on the PCI bus counts once.
  const other = await mkdtemp(join(tmpdir(), 'assay-accel-'));
  await mkdir(join(other, 'accel/accel0'), { recursive: true });
  await mkdir(join(other, 'accel/accel1'));
  await mkdir(join(other, 'chip'));
  await writeFile(join(other, 'chip/uevent'), 'DRIVER=rocket\n');
  await symlink(join(root, 'npu'), join(other, 'accel/accel0/device'));
  await symlink(join(other, 'chip'), join(other, 'accel/accel1/device'));
  await mkdir(join(other, 'dev'));
  await writeFile(join(other, 'dev/fastrpc-cdsp'), '');
  expect(await listAccelerators({ pci: root, accel: join(other, 'accel'), dev: join(other, 'dev') })).toEqual([
    ...onBus,
    { kind: 'NPU', vendor: 'other', driver: 'rocket' },
    { kind: 'NPU', vendor: 'Qualcomm', driver: 'fastrpc' },
  ]);
});
