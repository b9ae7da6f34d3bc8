/** Variables that programs and system libraries need: to find files, and to write numbers, times and texts. */
const SYSTEM = [
  'PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|TZ|TMPDIR|TEMP|TMP|LC_.*|XDG_CACHE_HOME',
  'LD_LIBRARY_PATH|LD_PRELOAD|DYLD_.*|GLIBC_TUNABLES|MALLOC_.*|FAKETIME.*',
  'SYSTEMROOT|SYSTEMDRIVE|WINDIR|COMSPEC|PATHEXT|USERPROFILE|APPDATA|LOCALAPPDATA|PROGRAMDATA|NUMBER_OF_PROCESSORS',
];
/** Settings of onnxruntime, of threads and mathematics, and of the drivers of GPUs and NPUs. */
const DRIVERS = [
  'ORT_.*|OMP_.*|KMP_.*|GOMP_.*|MKL_.*|OPENBLAS_.*|DNNL_.*|ONEDNN_.*',
  'CUDA_.*|CUDNN_.*|NVIDIA_.*|HIP_.*|HSA_.*|ROCR_.*|ROCM_.*|MIGRAPHX_.*|AMD_.*',
  'ZE_.*|ZES_.*|SYCL_.*|ONEAPI_.*|OPENVINO_.*|OV_.*|NPU_.*|QNN_.*|ADSP_.*|XLNX_.*|XILINX_.*|XRT_.*|OCL_.*|VK_.*',
];
const PASSED = new RegExp(`^(${[...SYSTEM, ...DRIVERS].join('|')})$`, 'iu');
/** Names of drivers' variables that hold a secret nevertheless. */
const SECRET = /token|key|secret|password|credential/iu;

/**
 * Returns the environment for a process that handles untrusted templates, model files or media: only variables that the
 * system, onnxruntime or a driver reads. Others may hold secrets under any name: an address with a password, an
 * authorization header, the socket of an agent.
 */
export function childEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => PASSED.test(name) && !SECRET.test(name)));
}

/**
 * Environment variables for every process that loads onnxruntime. Without them, onnxruntime's builds for Linux and
 * macOS since 1.30 send events and a machine id to their publisher over HTTPS. Source:
 * onnxruntime/core/platform/posix/telemetry.cc.
 */
export const NO_TELEMETRY = { ORT_DISABLE_TELEMETRY: '1' };
