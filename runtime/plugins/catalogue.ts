import { AssayError } from '../../lib/errors.ts';

/**
 * Describes a plugin execution provider of onnxruntime that Assay downloads on request. None ships with Assay, because
 * each has its own licence.
 */
export interface Plugin {
  name: PluginName;
  /** Name of the plugin that users see. */
  title: string;
  /** Name of the execution provider, under which the plugin is registered. */
  provider: string;
  /** Name of its package in the Python registry, of which only the libraries are used. */
  package: string;
  version: string;
  /** Wheel for each platform, by `process.platform`-`process.arch`. */
  wheels: Readonly<Record<string, Wheel>>;
  licence: string;
}

export interface Wheel {
  file: string;
  bytes: number;
  sha256: string;
  /** Path of the plugin's library inside the wheel. */
  library: string;
}

export const PLUGIN_NAMES = ['openvino', 'qnn', 'webgpu'] as const;
export type PluginName = (typeof PLUGIN_NAMES)[number];

/**
 * Plugins that can be installed. Versions, sizes and hashes are those of https://pypi.org/simple/<package>/. NVIDIA's
 * TensorRT-RTX is not included, because its package is empty and depends on CUDA 13 and a separate runtime that pip
 * installs; use CUDA instead (docs/devices.md).
 */
export const PLUGINS: readonly Plugin[] = [
  {
    name: 'openvino',
    title: 'Intel NPU, GPU and CPU (OpenVINO)',
    provider: 'OpenVINOExecutionProvider',
    package: 'onnxruntime-ep-openvino',
    version: '1.8.1',
    licence: 'MIT; OpenVINO inside: Apache-2.0',
    wheels: {
      'linux-x64': {
        file: 'onnxruntime_ep_openvino-1.8.1-py3-none-manylinux_2_28_x86_64.whl',
        bytes: 52_587_628,
        sha256: '3832643158c8c187fcab6db661cde2a8c06a2b3559d95d0f2411ac0e51c5e924',
        library: 'onnxruntime_ep_openvino/libonnxruntime_providers_openvino_plugin.so',
      },
      'win32-x64': {
        file: 'onnxruntime_ep_openvino-1.8.1-py3-none-win_amd64.whl',
        bytes: 75_824_318,
        sha256: '1acd878be173b02bb8b953460f2f59b121e5f6e47ebc6aad490c0590cf6718fb',
        library: 'onnxruntime_ep_openvino/onnxruntime_providers_openvino_plugin.dll',
      },
    },
  },
  {
    name: 'qnn',
    title: 'Qualcomm Hexagon NPU (QNN)',
    provider: 'QNNExecutionProvider',
    package: 'onnxruntime-qnn',
    version: '2.7.0',
    licence: 'MIT; Qualcomm AI Engine Direct inside: Qualcomm_LICENSE.pdf in the package',
    wheels: {
      // This wheel contains an emulator of the NPU, exact enough for tests but thousands of times slower.
      'linux-x64': {
        file: 'onnxruntime_qnn-2.7.0-cp311-cp311-manylinux_2_35_x86_64.whl',
        bytes: 98_578_793,
        sha256: 'c56c01562b8534fe8980cfea4601408d950c065f8251fb862ce82101c52c9849',
        library: 'onnxruntime_qnn/libonnxruntime_providers_qnn.so',
      },
      'linux-arm64': {
        file: 'onnxruntime_qnn-2.7.0-cp311-cp311-manylinux_2_34_aarch64.whl',
        bytes: 86_663_272,
        sha256: 'ad08bbfebd7c07ffe83995418303215f46cb25a89e12676f47ee20c32002eaad',
        library: 'onnxruntime_qnn/libonnxruntime_providers_qnn.so',
      },
      'win32-arm64': {
        file: 'onnxruntime_qnn-2.7.0-cp311-cp311-win_arm64.whl',
        bytes: 62_290_858,
        sha256: 'b919227025f1feb0d2c5cc4232951de22f738b80995e9d4f2af79c3b66e3c95d',
        library: 'onnxruntime_qnn/onnxruntime_providers_qnn.dll',
      },
    },
  },
  {
    name: 'webgpu',
    title: 'GPU (WebGPU plugin)',
    provider: 'WebGpuExecutionProvider',
    package: 'onnxruntime-ep-webgpu',
    version: '0.4.0',
    licence: 'MIT',
    wheels: {
      'linux-x64': {
        file: 'onnxruntime_ep_webgpu-0.4.0-py3-none-manylinux_2_28_x86_64.whl',
        bytes: 6_892_120,
        sha256: '5d8c961eda91a88961cad1fb7621f389f006b18497d6ea9ecf96f729f066cbfb',
        library: 'onnxruntime_ep_webgpu/libonnxruntime_providers_webgpu.so',
      },
      'linux-arm64': {
        file: 'onnxruntime_ep_webgpu-0.4.0-py3-none-manylinux_2_28_aarch64.whl',
        bytes: 6_096_222,
        sha256: '17f660db53b1a509c63e721ac6784a2daa1c4e91a968523ee9986505ee5b0a55',
        library: 'onnxruntime_ep_webgpu/libonnxruntime_providers_webgpu.so',
      },
      'darwin-arm64': {
        file: 'onnxruntime_ep_webgpu-0.4.0-py3-none-macosx_14_0_universal2.whl',
        bytes: 5_200_679,
        sha256: '8d0a91d44b43d931c3068b9134aed9770f27803e353c2b58c93e1700bb68bcca',
        library: 'onnxruntime_ep_webgpu/libonnxruntime_providers_webgpu.dylib',
      },
      'win32-x64': {
        file: 'onnxruntime_ep_webgpu-0.4.0-py3-none-win_amd64.whl',
        bytes: 13_149_847,
        sha256: '7db646669d1a2390551da675115ea125e68cb3d4d2c3a2d6e463372bf8d6ea87',
        library: 'onnxruntime_ep_webgpu/onnxruntime_providers_webgpu.dll',
      },
      'win32-arm64': {
        file: 'onnxruntime_ep_webgpu-0.4.0-py3-none-win_arm64.whl',
        bytes: 14_194_630,
        sha256: 'a9586f6744370776059edd794c11bca2f563258a5bd2707864aefff31d3af39f',
        library: 'onnxruntime_ep_webgpu/onnxruntime_providers_webgpu.dll',
      },
    },
  },
];

export function pluginNamed(name: PluginName): Plugin {
  return PLUGINS.find((plugin) => plugin.name === name)!;
}

/** Platform of this machine, as `process.platform`-`process.arch`. */
export const PLATFORM = `${process.platform}-${process.arch}`;

/** Returns the wheel of a plugin for a platform. Throws `invalid_value` if the vendor publishes none. */
export function wheelFor(plugin: Plugin, platform = PLATFORM): Wheel {
  const wheel = plugin.wheels[platform];
  if (wheel) return wheel;
  const platforms = Object.keys(plugin.wheels).join(', ');
  throw new AssayError(
    'invalid_value',
    `There is no ${plugin.name} plugin for ${platform}; its vendor publishes it for ${platforms}. List the devices of this machine: assay doctor`,
    { param: 'name' },
  );
}
