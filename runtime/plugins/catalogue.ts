import { AssayError } from '../../lib/errors.ts';

/**
 * Describes a plugin execution provider of onnxruntime that Assay downloads on request. None ships with Assay, because
 * each has its own licence.
 */
export interface Plugin {
  name: PluginName;
  /** Name of the plugin that users see. */
  title: string;
  /** Name of the execution provider. */
  provider: string;
  /**
   * Name under which the plugin is registered, which some plugins also take as the provider's name. It differs from the
   * provider's name only for WebGPU, because onnxruntime has its own WebGPU provider, registered under the provider's
   * name.
   */
  registration: string;
  /** Name of its package in the Python registry, of which only the libraries are used. */
  package: string;
  version: string;
  /**
   * True if the provider compiles a whole graph into its own binary (EPContext). False if it runs a graph operator by
   * operator, with its own kernels.
   */
  compiles: boolean;
  /** Wheel for each platform, by `process.platform`-`process.arch`. */
  wheels: Readonly<Record<string, PluginWheel>>;
  licence: string;
}

export interface Wheel {
  file: string;
  bytes: number;
  sha256: string;
}

export interface PluginWheel extends Wheel {
  /** Path of the plugin's library inside the wheel. */
  library: string;
  /** Files to unpack: path in the wheel and path to unpack to. Default: all files, as they are. */
  files?: UnpackedFiles;
  /** Wheels with libraries that the plugin's library depends on. */
  needs?: readonly LibraryWheel[];
}

/** Describes a wheel that only provides libraries for a plugin. */
export interface LibraryWheel extends Wheel {
  /** Name of its package in the Python registry. */
  package: string;
  files: UnpackedFiles;
}

export type UnpackedFiles = Readonly<Record<string, string>>;

export const PLUGIN_NAMES = ['openvino', 'qnn', 'cuda', 'webgpu'] as const;
export type PluginName = (typeof PLUGIN_NAMES)[number];

const CUDA_LIBRARY = 'onnxruntime/capi/libonnxruntime_providers_cuda.so';
/**
 * Files of the wheel with the CUDA provider for Linux. onnxruntime itself is among them, because it looks for the
 * library that it shares with its providers only beside itself.
 */
const CUDA_FILES: UnpackedFiles = {
  [CUDA_LIBRARY]: CUDA_LIBRARY,
  'onnxruntime/capi/libonnxruntime_providers_shared.so': 'onnxruntime/capi/libonnxruntime_providers_shared.so',
  'onnxruntime/capi/libonnxruntime.so.1.30.0': 'onnxruntime/capi/libonnxruntime.so.1',
};

/** Returns the files of one of NVIDIA's wheels for CUDA 13. */
const cu13 = (...libraries: string[]): UnpackedFiles =>
  Object.fromEntries(libraries.map((library) => [`nvidia/cu13/lib/${library}`, `nvidia/cu13/lib/${library}`]));

/**
 * Plugins that can be installed. Versions, sizes and hashes are those of https://pypi.org/simple/<package>/. NVIDIA's
 * TensorRT-RTX is not included, because its package is empty and depends on a separate runtime that pip installs; use
 * `cuda` instead.
 */
export const PLUGINS: readonly Plugin[] = [
  {
    name: 'openvino',
    title: 'Intel NPU, GPU and CPU (OpenVINO)',
    provider: 'OpenVINOExecutionProvider',
    registration: 'OpenVINOExecutionProvider',
    package: 'onnxruntime-ep-openvino',
    version: '1.8.1',
    compiles: true,
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
    registration: 'QNNExecutionProvider',
    package: 'onnxruntime-qnn',
    version: '2.7.0',
    compiles: true,
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
    name: 'cuda',
    title: 'NVIDIA GPU (CUDA 13)',
    provider: 'CUDAExecutionProvider',
    registration: 'CUDAExecutionProvider',
    package: 'onnxruntime-gpu',
    // The provider must have the version of onnxruntime-node.
    version: '1.30.0',
    compiles: false,
    licence: "MIT; CUDA inside: NVIDIA's EULA, License.txt in the packages",
    wheels: {
      'linux-x64': {
        file: 'onnxruntime_gpu-1.30.0-cp312-cp312-manylinux_2_28_x86_64.whl',
        bytes: 246_685_715,
        sha256: '6acc0f4b3d5ac5f2984432faa59dd8fcce6775f8b43a7140afa0f322c7a703b1',
        library: CUDA_LIBRARY,
        files: CUDA_FILES,
        needs: [
          {
            package: 'nvidia-cuda-runtime',
            file: 'nvidia_cuda_runtime-13.0.96-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl',
            bytes: 2_243_632,
            sha256: '7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548',
            files: cu13('libcudart.so.13'),
          },
          {
            package: 'nvidia-cublas',
            file: 'nvidia_cublas-13.1.0.3-py3-none-manylinux_2_27_x86_64.whl',
            bytes: 423_133_236,
            sha256: 'ee8722c1f0145ab246bccb9e452153b5e0515fd094c3678df50b2a0888b8b171',
            files: cu13('libcublasLt.so.13', 'libcublas.so.13'),
          },
          {
            package: 'nvidia-curand',
            file: 'nvidia_curand-10.4.0.35-py3-none-manylinux_2_27_x86_64.whl',
            bytes: 59_544_258,
            sha256: '1aee33a5da6e1db083fe2b90082def8915f30f3248d5896bcec36a579d941bfc',
            files: cu13('libcurand.so.10'),
          },
        ],
      },
      'linux-arm64': {
        file: 'onnxruntime_gpu-1.30.0-cp312-cp312-manylinux_2_34_aarch64.whl',
        bytes: 205_731_632,
        sha256: '12af352b24145b3480794fcf327d313a240550e772a07fb182390872c1a642fc',
        library: CUDA_LIBRARY,
        files: CUDA_FILES,
        needs: [
          {
            package: 'nvidia-cuda-runtime',
            file: 'nvidia_cuda_runtime-13.0.96-py3-none-manylinux2014_aarch64.manylinux_2_17_aarch64.whl',
            bytes: 2_261_060,
            sha256: 'ef9bcbe90493a2b9d810e43d249adb3d02e98dd30200d86607d8d02687c43f55',
            files: cu13('libcudart.so.13'),
          },
          {
            package: 'nvidia-cublas',
            file: 'nvidia_cublas-13.1.0.3-py3-none-manylinux_2_27_aarch64.whl',
            bytes: 542_851_226,
            sha256: 'c86fc7f7ae36d7528288c5d88098edcb7b02c633d262e7ddbb86b0ad91be5df2',
            files: cu13('libcublasLt.so.13', 'libcublas.so.13'),
          },
          {
            package: 'nvidia-curand',
            file: 'nvidia_curand-10.4.0.35-py3-none-manylinux_2_27_aarch64.whl',
            bytes: 61_962_106,
            sha256: '133df5a7509c3e292aaa2b477afd0194f06ce4ea24d714d616ff36439cee349a',
            files: cu13('libcurand.so.10'),
          },
        ],
      },
    },
  },
  {
    name: 'webgpu',
    title: 'GPU (WebGPU plugin)',
    provider: 'WebGpuExecutionProvider',
    registration: 'webgpu-plugin',
    package: 'onnxruntime-ep-webgpu',
    version: '0.4.0',
    compiles: false,
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
export function wheelFor(plugin: Plugin, platform = PLATFORM): PluginWheel {
  const wheel = plugin.wheels[platform];
  if (wheel) return wheel;
  const platforms = Object.keys(plugin.wheels).join(', ');
  throw new AssayError(
    'invalid_value',
    `There is no ${plugin.name} plugin for ${platform}; its vendor publishes it for ${platforms}. List the devices of this machine: assay doctor`,
    { param: 'name' },
  );
}
